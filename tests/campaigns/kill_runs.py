"""Training and leagues that are killed at random moments: ``python tests/campaigns/kill_runs.py --minutes 30``.

Every case starts `echelon train` or `echelon league play` and kills it with SIGKILL, again and again at random
moments, resuming each time, until it ends. A run has to end equal to the last bit, in weights, training state and
metrics, to one that was never interrupted; a league has to be sound (`echelon league fsck`) after every kill, and its
ratings have to be those that `rebuild` derives. The exit status is 1 if there is a finding, whose folder is kept.
``--case SEED`` repeats the choice of moments.
"""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from train.resuming import OPTIONS, differences  # noqa: E402

COMMAND = [sys.executable, "-c", "import sys; from echelon_env.cli import main; sys.exit(main(sys.argv[1:]))"]
SETTINGS = {**OPTIONS, "steps": "960", "checkpoint_every": "64", "eval_every": "320", "eval_battles": "2"}
LEAGUE_MATCHES = 30
MAX_KILLS = 25
"""Of a case; then it is left to end."""


class FoundError(Exception):
    """Something that a kill has broken."""


def echelon(arguments: Sequence[str], kill_after: float | None = None) -> int | None:
    """Run a command and return its exit status; None if it was killed."""
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    if process.returncode:
        raise FoundError(f"echelon {' '.join(arguments)}: exit status {process.returncode}\n{output[-2000:]}")
    return process.returncode


def train_command(folder: Path) -> list[str]:
    """The command that starts a run in a folder, or resumes the one that is there."""
    if (folder / "run.json").exists():
        return ["train", "--resume", str(folder)]
    return ["train", "quickstart", *(f"--set={name}={value}" for name, value in SETTINGS.items()), "--out", str(folder)]


def kill_training(moments: random.Random, folder: Path, whole: Path, seconds: float) -> int:
    """Train with kills in a folder; returns their number. Raises FoundError."""
    for kills in range(MAX_KILLS + 1):
        after = moments.uniform(0.0, 1.2 * seconds) if kills < MAX_KILLS else None
        if echelon(train_command(folder), after) is not None:
            break
    if different := differences(whole, folder):
        raise FoundError(f"a run that was killed {kills} times differs in {different}")
    return kills


def kill_league(moments: random.Random, folder: Path, seconds: float) -> int:
    """Play a league with kills; returns their number. Raises FoundError."""
    echelon(["league", "init", str(folder)])
    scenario = ["--scenario", "duel-open", "--maps", "1", "--until-rd", "46", "--processes", str(moments.randint(1, 2))]
    for kills in range(MAX_KILLS + 1):
        after = moments.uniform(0.0, 1.2 * seconds) if kills < MAX_KILLS else None
        ended = echelon(["league", "play", str(folder), *scenario, "--max-matches", str(LEAGUE_MATCHES)], after)
        echelon(["league", "fsck", str(folder)])
        if ended is not None:
            break
    before = standings(folder)
    echelon(["league", "rebuild", str(folder)])
    if standings(folder) != before:
        raise FoundError(f"after {kills} kills the ratings are not those that follow from the matches")
    return kills


def standings(folder: Path) -> str:
    """The standings of a league as JSON."""
    command = [*COMMAND, "league", "standings", "--json", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def timed(arguments: Sequence[str]) -> float:
    """Run a command and return its seconds."""
    began = time.monotonic()
    echelon(arguments)
    return time.monotonic() - began


def campaign(minutes: float, seeds: Sequence[int], root: Path) -> int:
    """Run cases until the time is up, or those of the seeds. Returns 1 if there were findings."""
    end = time.monotonic() + 60 * minutes
    whole, counted, findings = root / "whole", Counter[str](), 0
    seconds = timed(train_command(whole))
    queue = list(seeds)
    while queue if seeds else time.monotonic() < end:
        seed = queue.pop(0) if seeds else secrets.randbits(48)
        moments, folder = random.Random(seed), root / str(seed)
        kind = "league" if moments.random() < 0.3 else "training"
        try:
            if kind == "league":
                kills = kill_league(moments, folder, seconds)
            else:
                kills = kill_training(moments, folder, whole, seconds)
        except FoundError as finding:
            findings += 1
            print(f"FOUND: --case {seed} ({kind}), in {folder}: {finding}", flush=True)
            continue
        counted.update({kind: 1, f"kills of {kind}": kills})
        shutil.rmtree(folder)
    print(f"{dict(counted)}, {findings} findings")
    if not findings:
        shutil.rmtree(root)
    return 1 if findings else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign, or single cases."""
    parser = argparse.ArgumentParser(prog="kill_runs", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="no case starts later (default: 30)")
    parser.add_argument("--case", type=int, nargs="+", default=[], metavar="SEED", help="run these cases only")
    options = parser.parse_args(arguments)
    return campaign(options.minutes, options.case, Path(tempfile.mkdtemp(prefix="echelon-kills-")))


if __name__ == "__main__":
    sys.exit(main())
