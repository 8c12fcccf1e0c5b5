"""Build hook: a wheel brings the library of machine code for one machine (see native/README.md)."""

from __future__ import annotations

import os
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement

TARGET = "ECHELON_TARGET"
"""Environment variable: the machine to build for, see native/targets.py, or ``none``; default this one."""


class MachineCodeHook(BuildHookInterface[Any]):  # type: ignore[misc]
    """Builds the library, in the source tree for this machine, and puts it into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls this before it collects a wheel's files; `version` is ``"standard"`` or ``"editable"``.

        A library that cannot be built is an error: pip shows no warnings of a build that succeeds.
        """
        name = os.environ.get(TARGET)
        if name == "none" or (name is None and not self._compiles_here()):
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
            raise RuntimeError(
                f"no machine code could be built ({error}): install the build requirements of pyproject.toml, "
                f"or set {TARGET}=none for a wheel without it, whose kernels need the extra 'jit'"
            ) from error
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{'.'.join(target.tags)}"
            build_data["force_include"][str(folder)] = "echelon_env/machine_code"

    def _compiles_here(self) -> bool:
        """Whether pyproject.toml requires all compilers on this machine."""
        with Path(self.root, "pyproject.toml").open("rb") as file:
            requires = tomllib.load(file)["build-system"]["requires"]
        markers = [Requirement(each).marker for each in requires]
        return all(marker is None or marker.evaluate() for marker in markers)
