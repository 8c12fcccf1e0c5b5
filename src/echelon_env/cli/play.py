"""Drive a mech in the browser, against scripted levels or trained policies; or watch a policy that is training."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from echelon_env.cli.arguments import positive
from echelon_env.cli.play_server import PageServer, PlayServer
from echelon_env.cli.tournament import make_player, seed
from echelon_env.cli.watch_server import LiveBattles, WatchServer, wait_for_checkpoint
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.replays import Game
from echelon_env.replays.game import NO_MECH
from echelon_env.storage.atomic import free_path

_PORTS = 65_535
_MAPS = 10
_SCENARIO, _OPPONENT, _TEAMMATE = "skirmish", "novice", "competent"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add(
        "scenario",
        nargs="?",
        help=f"a scenario's name or file (default: {_SCENARIO}, or with --watch the training scenario)",
    )
    add(
        "--opponent",
        default=_OPPONENT,
        metavar="NAME",
        help=f"a level, 'champion', 'idle' or 'policy:PATH' (default: {_OPPONENT}); with --watch any that "
        "'echelon evaluate' takes",
    )
    add("--teammate", metavar="NAME", help=f"who plays the rest of your team (default: {_TEAMMATE})")
    add(
        "--as",
        dest="mech",
        metavar="MECH",
        help=f"the mech to drive: a class such as 'medium', an agent such as 'red_0', or '{NO_MECH}' to watch",
    )
    add(
        "--watch",
        metavar="RUN",
        help="show battles of the newest checkpoint of a run while it trains, and play nothing yourself",
    )
    add("--seed", type=seed, default=0, metavar="N", help="seed of the maps and of the players (default: 0)")
    add("--html", type=Path, metavar="FILE", help="write the page with its maps to a file, and serve nothing")
    add("--maps", type=positive, metavar="N", help=f"maps in the file of --html (default: {_MAPS})")
    add("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")
    add("--no-browser", action="store_true", help="print the address only")


def run(args: argparse.Namespace) -> int:
    """Write the page, or serve it until it is closed or Ctrl-C is pressed."""
    if not 0 <= args.port <= _PORTS:
        raise ConfigError(f"--port: expected 0 to {_PORTS:,}, got {args.port}")
    if args.watch is not None:
        return _watch(args)
    if args.html is None and args.maps is not None:
        raise ConfigError("--maps: the page of a server has as many as are played; expected --html FILE with it")
    if args.html is not None and args.html.is_dir():
        raise ConfigError(f"--html: expected a file, got the folder {args.html}")
    game = Game(
        _SCENARIO if args.scenario is None else args.scenario,
        opponent=args.opponent,
        teammate=_TEAMMATE if args.teammate is None else args.teammate,
        mech=args.mech,
        seed=args.seed,
    )
    if args.html is not None:
        path = free_path(args.html)
        game.write(path, _MAPS if args.maps is None else args.maps)
        print(f"wrote {path}: open it in a browser")
        return 0
    return _serve(args, lambda: PlayServer(game, args.port), "Playing")


def _watch(args: argparse.Namespace) -> int:
    """Serve battles of a run that trains. Raises ConfigError for options that are not for it, players and scenarios."""
    others = {"--teammate": args.teammate, "--as": args.mech, "--html": args.html, "--maps": args.maps}
    for option, given in others.items():
        if given is not None:
            raise ConfigError(f"{option}: not allowed with --watch, whose page shows one battle after the other")
    opponent = make_player(args.opponent, args.seed)
    config = None if args.scenario is None else make_config(args.scenario)
    wait_for_checkpoint(args.watch)
    battles = LiveBattles(args.watch, opponent, config, args.seed)
    return _serve(args, lambda: WatchServer(battles, args.port), f"Watching {args.watch}")


def _serve(args: argparse.Namespace, start: Callable[[], PageServer], doing: str) -> int:
    """Start a server, and serve until its page is closed or Ctrl-C is pressed."""
    try:
        served = start()
    except OSError as error:
        raise ConfigError(f"--port {args.port}: {error.strerror}") from None
    with served as server:
        print(f"{doing} at {server.url}", flush=True)
        print("It ends with the page, or with Ctrl-C.", flush=True)
        if not args.no_browser:
            # some browsers are waited for, and wait for the page themselves
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
