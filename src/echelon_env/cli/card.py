"""Make a player's card: what it uses of the game, and what its battles are like."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from echelon_env.cli import tournament
from echelon_env.cli.arguments import change_battle, parse_settings, positive
from echelon_env.cli.output import show_status
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.players import ACTION_MODES
from echelon_env.evaluate.seeds import evaluation_seed

_SCENARIO = "skirmish"
_BATTLES = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("player", metavar="PLAYER", help="as of `echelon evaluate`")
    add("--opponent", metavar="PLAYER", help="what the player without something plays against (default: the player)")
    add("--scenario", default=_SCENARIO, metavar="NAME", help="scenario to play (default: %(default)s)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="change the scenario: any key of a battle")
    add("--without", nargs="+", metavar="THING", help="rows of the card (default: all)")
    add(
        "--battles", type=tournament.even, default=_BATTLES, metavar="N", help="battles of a row (default: %(default)s)"
    )
    add("--seed", type=tournament.seed, default=0, help="seed of the maps and of random choices (default: %(default)s)")
    add("--actions", choices=ACTION_MODES, default=ACTION_MODES[0], help="how networks act (default: %(default)s)")
    add("--threads", type=positive, default=1, help="number of threads of battles and players (default: %(default)s)")
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="new file for the card (JSON); RUN/card.json is shown in a run's report",
    )
    add("--json", action="store_true", help="print the card as JSON")


def run(args: argparse.Namespace) -> int:
    """Play the battles and print the card."""
    from echelon_env.evaluate.card import chosen, format_card, make_card, write_card  # imports scipy.stats, slowly

    if args.out:
        tournament.check_new_file(args.out)
    player = tournament.make_player(args.player, args.seed, action_mode=args.actions)
    opponent = player
    if args.opponent and args.opponent != args.player:
        opponent = tournament.make_player(args.opponent, args.seed, action_mode=args.actions)
    config = change_battle(make_config(args.scenario), parse_settings(args.set))
    try:
        rows = chosen(config, args.without)
    except ConfigError as error:
        raise ConfigError(f"--without: {error}") from None
    total = args.battles * (1 + len(rows))
    try:
        card = make_card(
            player,
            opponent,
            config,
            [evaluation_seed(args.seed, index) for index in range(args.battles // 2)],
            scenario=args.scenario,
            rows=rows,
            seed=args.seed,
            num_threads=args.threads,
            on_battles=lambda finished: show_status(f"{finished:,} of {total:,} battles"),
        )
    finally:
        show_status("")
    try:  # print first, as the disk may be full; write in any case, as the pipe may be closed
        print(json.dumps(card, allow_nan=False) if args.json else format_card(card), flush=True)
    finally:
        if args.out:
            write_card(args.out, card)
    return 0
