"""Build hook: a wheel brings the library of machine code for one machine (see native/README.md)."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "ECHELON_TARGET"
"""Environment variable: the machine to build for, see native/targets.py, or ``none``; default this one."""


class MachineCodeHook(BuildHookInterface[Any]):  # type: ignore[misc]
    """Builds the library, in the source tree for this machine, and puts it into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls this before it collects a wheel's files; `version` is ``"standard"`` or ``"editable"``."""
        name = os.environ.get(TARGET)
        if name == "none":
            return
        try:
            sys.path.insert(0, self.root)
            from native.build import FOLDER, build_all, is_current, target_of

            target = target_of(name)
            self._work = tempfile.TemporaryDirectory()  # until the wheel is written
            folder = FOLDER if name is None else Path(self._work.name)
            if name is not None or not is_current(target):
                build_all({target: folder})
        except Exception as error:
            if name is not None:
                raise
            self.app.display_warning(f"no machine code could be built ({error}): kernels need the extra 'jit'")
            return
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{'.'.join(target.tags)}"
            build_data["force_include"][str(folder)] = "echelon_env/machine_code"
