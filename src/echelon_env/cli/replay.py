"""Check replays: simulate each again, compare every state with the recording, and write it in other forms."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from echelon_env.cli.dispatch import fail
from echelon_env.config.schema import ConfigError
from echelon_env.engine.state import DRAW, REASONS
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.tables import shorten
from echelon_env.replays import (
    Replay,
    ReplayError,
    export_gif,
    export_minari,
    export_npz,
    read_replay,
    write_page,
    write_replay,
)
from echelon_env.replays.export import check_dataset_name
from echelon_env.storage.atomic import free_path

_TEAMS = ("blue", "red")
_DIFFERENT = 1
"""Exit code if a replay differs from its recording."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="replays, or pages with one")
    add("--html", type=Path, metavar="DIR", help="write a page for each, which any browser opens without a network")
    add("--gif", type=Path, metavar="DIR", help="write a film of each")
    add("--npz", type=Path, metavar="DIR", help="write observations, actions and rewards of each that is equal")
    add("--minari", metavar="NAME", help="create a Minari dataset with an episode for each mech (extra: minari)")
    add("--replay", type=Path, metavar="DIR", help="write the replay of each, for example of a page")


def run(args: argparse.Namespace) -> int:
    """Check the replays and print a summary of each."""
    writers: dict[str, Callable[[Path, Replay], None]] = {
        "html": write_page,
        "gif": lambda path, replay: export_gif(replay, path),
        "npz": lambda path, replay: export_npz(replay, path),
        "replay": write_replay,
    }
    if args.minari is not None:
        try:
            check_dataset_name(args.minari)
        except ValueError as error:
            raise ConfigError(f"--minari: {error}") from None
    code, replays = 0, []
    for file in args.files:
        try:
            replay = read_replay(file)
            text, equal = describe(file, replay)
        except (ReplayError, OSError) as error:
            code = _report(error)
            continue
        print(text)
        if equal:
            replays.append(replay)
        else:
            code = max(code, _DIFFERENT)
        for suffix, write in writers.items():
            folder: Path | None = getattr(args, suffix)
            if folder is None:
                continue
            if suffix == "npz" and not equal:
                print("  no transitions of a battle that differs from its recording", file=sys.stderr)
                continue
            if folder.exists() and not folder.is_dir():
                raise ConfigError(f"--{suffix}: expected a folder, got the file {folder}")
            folder.mkdir(parents=True, exist_ok=True)
            target = free_path(folder / f"{file.stem}.{suffix}")
            try:
                write(target, replay)
            except ReplayError as error:
                code = _report(ReplayError(f"{file}: --{suffix}: {error}"))
                continue
            print(f"  wrote {target}")
    if args.minari is not None:
        try:
            export_minari(replays, args.minari)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"--minari: {error}") from None
        print(f"created the Minari dataset {args.minari}")
    return code


def _report(error: ReplayError | OSError) -> int:
    """Print an error, after which the next file is checked; returns the exit code."""
    if isinstance(error, OSError) and error.filename:
        return fail(f"{error.filename}: {error.strerror}")
    return fail(str(error))


def describe(file: Path, replay: Replay) -> tuple[str, bool]:
    """A summary of a replay: its players, how it ends, and whether it is the recorded battle.

    Raises ReplayError as `Replay.play`, with the file's name.
    """
    difference: int | None = None
    try:
        for decision, engine in enumerate(replay.play()):
            if difference is None and not replay.matches(engine, decision):
                difference = decision
    except ReplayError as error:
        raise ReplayError(f"{file}: {error}") from None
    config, battle = replay.config, engine.state.battles[0]
    ending = "is not over"
    if battle["over"]:
        who = "draw" if battle["winner"] == DRAW else f"{_TEAMS[battle['winner']]} wins"
        ending = f"{who}, {REASONS[battle['reason']].replace('_', ' ')}"
    blue, red = (shorten(name, 24) for name in replay.players)
    seconds = replay.decisions * config.decision_seconds
    lines = [
        f"{shorten(str(file), 70)}",
        f"  {blue} (blue) v {red} (red), {len(config.blue)} v {len(config.red)}: {ending}",
        f"  {replay.decisions} decisions, {seconds:.0f} s, map seed {replay.map_seed}",
    ]
    theirs, ours = (str(each.get("engine_hash", "?"))[:12] for each in (replay.stamp, stamp()))
    engines = f"engine {ours}" if theirs == ours else f"recorded by engine {theirs}, this is {ours}"
    if difference is None:
        lines.append(f"  {replay.decisions} of {replay.decisions} decisions equal ({engines})")
    else:
        lines.append(f"  differs from the recording after decision {difference} of {replay.decisions} ({engines})")
    return "\n".join(lines), difference is None
