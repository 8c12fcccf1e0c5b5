"""Break the program in one place after the other and see the tests fail: ``python tests/mutants/run.py``.

Each mutant is applied to a copy of src/, on which its tests run. It is killed if a test fails, whose line of pytest's
summary is printed, or if the tests do not end in time. A mutant that survives, or breaks the tests otherwise, makes the
exit status 1. Tests are first run without a mutant, and must pass.
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
TIMED_OUT = -1
TIMEOUT = 900  # seconds for a test file; a mutant may never end


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/mutants/run.py", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants that have one of these in their names")
    words = parser.parse_args().words
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "src"
        shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__"))
        for test in sorted({mutant.test for mutant in chosen}):
            status, reason = run_tests(sources, test)
            if status != PASSED:
                print(f"{test} fails without a mutant\n{reason}")
                return 1
        bad = sum(not is_killed(sources, mutant) for mutant in chosen)
    print(f"{len(chosen) - bad} of {len(chosen)} mutants killed")
    return 1 if bad else 0


def is_killed(sources: Path, mutant: Mutant) -> bool:
    """Apply a mutant to a copy of src/, run its tests, undo it and print the result."""
    path, start = sources / mutant.file, time.monotonic()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    status, reason = run_tests(sources, mutant.test)
    path.write_text(text, encoding="utf-8")
    verdict = {PASSED: "SURVIVED", FAILED: "killed", TIMED_OUT: "timed out"}.get(status, f"PYTEST ENDED WITH {status}")
    print(f"{verdict:9} {time.monotonic() - start:4.0f} s  {mutant.name:50} {mutant.test}", flush=True)
    if reason:
        print(f"{'':17}{reason}", flush=True)
    return status in (FAILED, TIMED_OUT)


def run_tests(sources: Path, test: str) -> tuple[int, str]:
    """Pytest's exit status on the sources, or `TIMED_OUT`, and the lines of its summary that name the failed test.

    Pytest stops at the first failure. The rules' tests run without the JIT; the kernels that other tests compile are
    cached beside the sources.
    """
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["ECHELON_CACHE_DIR"] = str(sources.parent / "cache")
    if test.startswith("tests/rules/"):
        environment["NUMBA_DISABLE_JIT"] = "1"
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", test]
    try:
        result = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return TIMED_OUT, ""
    lines = [line for line in result.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return result.returncode, "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
