"""The command line: `echelon <command>`, one command per file, each a thin layer over an importable function."""

from echelon_env.cli.dispatch import main

__all__ = ["main"]
