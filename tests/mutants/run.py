"""Break the program in one place after the other and see the tests fail: ``python tests/mutants/run.py``.

Each mutant is applied to a copy of src/, on which its tests run. It is killed if a test fails; one that survives, or
breaks the tests otherwise, makes the exit status 1. Tests are first run without a mutant, and must pass.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from catalogue import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
PASSED, FAILED = 0, 1  # exit statuses of pytest


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/mutants/run.py", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants that have one of these in their names")
    words = parser.parse_args().words
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "src"
        shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__"))
        for test in sorted({mutant.test for mutant in chosen}):
            if run_tests(sources, test) != PASSED:
                print(f"{test} fails without a mutant")
                return 1
        bad = sum(not is_killed(sources, mutant) for mutant in chosen)
    print(f"{len(chosen) - bad} of {len(chosen)} mutants killed")
    return 1 if bad else 0


def is_killed(sources: Path, mutant: Mutant) -> bool:
    """Apply a mutant to a copy of src/, run its tests, undo it and print what came out."""
    path, start = sources / mutant.file, time.monotonic()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    status = run_tests(sources, mutant.test)
    path.write_text(text, encoding="utf-8")
    verdict = {PASSED: "SURVIVED", FAILED: "killed"}.get(status, f"PYTEST ENDED WITH {status}")
    print(f"{verdict:9} {time.monotonic() - start:4.0f} s  {mutant.name:50} {mutant.test}", flush=True)
    return status == FAILED


def run_tests(sources: Path, test: str) -> int:
    """Pytest's exit status on the sources, stopping at the first failure; the rules' tests run without the JIT."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    if test.startswith("tests/rules/"):
        environment["NUMBA_DISABLE_JIT"] = "1"
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", test]
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
