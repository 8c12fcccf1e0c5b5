"""All Hypothesis tests again and again with random seeds: ``python tests/fuzz.py --minutes 30``, or ``make fuzz``.

Every round runs each test with the number of examples that it has in the default run. Arguments after the minutes go to
pytest, such as a folder or ``--ignore``. The exit status is 1 if a round failed; its seed is printed, and Hypothesis
prints the example.
"""

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SELECTED = "hypothesis and not slow"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/fuzz.py", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="no round starts later (default: 30)")
    options, arguments = parser.parse_known_args()
    environment = {**os.environ, "ECHELON_HYPOTHESIS_PROFILE": "fuzz"}
    end = time.monotonic() + 60 * options.minutes
    rounds, failed = 0, []
    while time.monotonic() < end:
        seed = secrets.randbits(32)
        command = ["pytest", "-q", "-m", SELECTED, f"--hypothesis-seed={seed}", *arguments]
        status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment).returncode
        if status not in (0, 1):  # interrupted, or nothing was run
            return status
        rounds += 1
        if status:
            failed.append(seed)
            print(f"FOUND: ECHELON_HYPOTHESIS_PROFILE=fuzz python -m {' '.join(command)}", flush=True)
    print(f"{rounds} rounds, {len(failed)} failed" + (f", with seeds {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
