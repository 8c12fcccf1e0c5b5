"""A league run that is killed at random moments: ``python tests/campaigns/kill_league_run.py LEAGUE --minutes 90``.

It keeps `echelon league run LEAGUE` going for the given time, and kills with SIGKILL in turn the supervisor, which is
started again at once, and one of its learners, which the supervisor has to start again. After every kill of the
supervisor the league has to be sound (`fsck`), and all members and matches that it had before have to be there. At the
end its ratings have to be those that `rebuild` derives. It prints the ratings of the snapshots with their ages. The
exit status is 1 if there is a finding. Unknown options are those of `echelon league run`.

With ``--ray`` the league runs on a Ray cluster of two local nodes with two cores each. Then a node is killed instead of
a learner, and another one joins a minute later.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League

COMMAND = [sys.executable, "-c", "import sys; from echelon_env.cli import main; sys.exit(main(sys.argv[1:]))"]
CHILD = b"echelon_train.supervisor.child"


def children(supervisor: int) -> list[int]:
    """The learners and probes that a supervisor has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            if parent == supervisor and CHILD in folder.joinpath("cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue  # it has ended
    return found


def events(league: League) -> set[str]:
    """The members and the matches of a league."""
    return {each.name for each in league.members()} | {each.uuid for each in league.matches()}


def check(path: Path, before: set[str]) -> set[str]:
    """The events of a league that must be sound and still have those of before."""
    problems = [str(finding) for finding in fsck(path)]
    now = events(League.open(path))
    problems += [f"lost: {event}" for event in sorted(before - now)]
    if problems:
        raise SystemExit("\n".join(["FOUND", *problems]))
    return now


def start_run(league: Path, end: float, options: list[str]) -> subprocess.Popen[bytes]:
    """Start the supervisor until `end`, in seconds since the epoch."""
    left = max(0.1, (end - time.time()) / 60)
    command = [*COMMAND, "league", "run", str(league), "--max-minutes", f"{left:.2f}", *options]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


class Nodes:
    """A Ray cluster of this machine, of which one node is killed and replaced."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._node = {"num_cpus": 2, "object_store_memory": 10**8}
        self._cluster = Cluster(initialize_head=True, head_node_args={**self._node, "include_dashboard": False})
        self._second = self._cluster.add_node(**self._node)
        self.address: str = self._cluster.address

    def kill(self) -> None:
        """Kill the second node, and add another one after a minute."""
        self._cluster.remove_node(self._second, allow_graceful=False)
        time.sleep(60.0)
        self._second = self._cluster.add_node(**self._node)


def main() -> None:
    """Run, kill and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("league", type=Path)
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ray", action="store_true", help="on a cluster of two local nodes")
    args, options = parser.parse_known_args()
    nodes = Nodes() if args.ray else None
    if nodes is not None:
        options += ["--ray", nodes.address]
    moments = random.Random(args.seed)
    start, end = time.time(), time.time() + 60 * args.minutes
    due = sorted(moments.uniform(start + 60, end - 180) for _ in range(args.kills))
    seen: set[str] = set()
    process = start_run(args.league, end, options)
    for number, moment in enumerate(due):
        if process.poll() is not None:
            process = start_run(args.league, end, options)
        while time.time() < moment and process.poll() is None:
            time.sleep(0.2)
        if process.poll() is not None:
            raise SystemExit(f"FOUND\nthe supervisor has ended with {process.returncode}")
        if nodes is not None and number % 2 == 0:
            print(f"{time.time() - start:7.0f} s: kill a node", flush=True)
            nodes.kill()
            continue
        victims = children(process.pid) if number % 2 else []
        victim = moments.choice(victims) if victims else process.pid
        print(f"{time.time() - start:7.0f} s: kill {'a learner' if victims else 'the supervisor'} {victim}", flush=True)
        seen = events(League.open(args.league)) if (args.league / "league.db").exists() else set()
        subprocess.run(["kill", f"-{int(signal.SIGKILL)}", str(victim)], check=True)
        if not victims:
            process.wait()
            seen = check(args.league, seen)
    if process.poll() is not None:
        process = start_run(args.league, end, options)
    if process.wait():
        raise SystemExit(f"FOUND\nthe supervisor has ended with {process.returncode}")
    check(args.league, seen)
    league = League.open(args.league)
    changed = league.rebuild()
    print(f"{len(due)} kills, {len(league.matches()):,} matches, {len(league.members())} members")
    print(f"fsck: clean; ratings that rebuild changed: {changed}")
    for standing in sorted(league.standings(), key=lambda each: each.member.age):
        rating = standing.rating
        print(f"{standing.member.name:24}{standing.member.age:12,}{rating.rating:8.0f} ± {1.96 * rating.deviation:.0f}")
    if changed:
        raise SystemExit("FOUND\nratings differ after a rebuild")


if __name__ == "__main__":
    main()
