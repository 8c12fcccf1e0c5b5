"""``python -m echelon_env``: the command `echelon`, where it is not on the path, as in many notebooks."""

from __future__ import annotations

import sys

from echelon_env.cli import main

if __name__ == "__main__":
    sys.exit(main())
