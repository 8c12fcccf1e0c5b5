"""Drive a mech in the browser, against scripted levels or trained policies that play in the page."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from pathlib import Path

from echelon_env.cli.arguments import positive
from echelon_env.cli.play_server import PlayServer
from echelon_env.config.schema import ConfigError
from echelon_env.replays import Game
from echelon_env.replays.game import NO_MECH
from echelon_env.storage.atomic import free_path

_PORTS = 65_535
_MAPS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("scenario", nargs="?", default="skirmish", help="a scenario's name or file (default: skirmish)")
    add(
        "--opponent",
        default="expert",
        metavar="NAME",
        help="a level, 'champion', 'idle' or 'policy:PATH' (default: expert)",
    )
    add("--teammate", default="expert", metavar="NAME", help="who plays the rest of your team (default: expert)")
    add(
        "--as",
        dest="mech",
        metavar="MECH",
        help=f"the mech to drive: a class such as 'medium', an agent such as 'red_0', or '{NO_MECH}' to watch",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of the maps and of the players (default: 0)")
    add("--html", type=Path, metavar="FILE", help="write the page with its maps to a file, and serve nothing")
    add("--maps", type=positive, metavar="N", help=f"maps in the file of --html (default: {_MAPS})")
    add("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")
    add("--no-browser", action="store_true", help="print the address only")


def run(args: argparse.Namespace) -> int:
    """Write the page, or serve it until it is closed or Ctrl-C is pressed."""
    if not 0 <= args.port <= _PORTS:
        raise ConfigError(f"--port: expected 0 to {_PORTS:,}, got {args.port}")
    if args.html is None and args.maps is not None:
        raise ConfigError("--maps: the page of a server has as many as are played; expected --html FILE with it")
    if args.html is not None and args.html.is_dir():
        raise ConfigError(f"--html: expected a file, got the folder {args.html}")
    game = Game(args.scenario, opponent=args.opponent, teammate=args.teammate, mech=args.mech, seed=args.seed)
    if args.html is not None:
        path = free_path(args.html)
        game.write(path, _MAPS if args.maps is None else args.maps)
        print(f"wrote {path}: open it in a browser")
        return 0
    try:
        served = PlayServer(game, args.port)
    except OSError as error:
        raise ConfigError(f"--port {args.port}: {error.strerror}") from None
    with served as server:
        print(f"Playing at {server.url}", flush=True)
        print("It ends with the page, or with Ctrl-C.", flush=True)
        if not args.no_browser:
            # some browsers are waited for, and wait for the page themselves
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
