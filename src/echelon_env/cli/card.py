"""Make a player's card: what it uses of the game, and statistics of its battles."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from echelon_env.cli import tournament
from echelon_env.cli.arguments import parse_settings, positive
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
    add(
        "--scenario",
        metavar="NAME",
        help=f"scenario to play (default: that of the player's training, else {_SCENARIO})",
    )
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="change the scenario: any key of a battle")
    add(
        "--without",
        nargs="+",
        metavar="NAME",
        help="rows of the card, such as jets, or jets+smoke for both at once (default: all, one by one)",
    )
    add(
        "--battles", type=tournament.even, default=_BATTLES, metavar="N", help="battles of a row (default: %(default)s)"
    )
    add("--seed", type=tournament.seed, default=0, help="seed of the maps and of random choices (default: %(default)s)")
    add("--actions", choices=ACTION_MODES, default=ACTION_MODES[0], help="how networks act (default: %(default)s)")
    add("--threads", type=positive, default=1, help="number of threads of battles and players (default: %(default)s)")
    add("--out", type=Path, metavar="FILE", help="new file for the card (JSON); reports of runs show RUN/card.json")
    add("--json", action="store_true", help="print the card as JSON")


def run(args: argparse.Namespace) -> int:
    """Play the battles and print the card."""
    from echelon_env.evaluate.card import format_card, make_card, named_ablations, write_card  # import scipy.stats

    if args.out:
        tournament.check_new_file(args.out)
    player = tournament.make_player(args.player, args.seed, action_mode=args.actions)
    opponent = player
    if args.opponent and args.opponent != args.player:
        opponent = tournament.make_player(args.opponent, args.seed, action_mode=args.actions)
    seeds = tuple(evaluation_seed(args.seed, index) for index in range(args.battles // 2))
    names = [args.scenario] if args.scenario else None
    (field,) = tournament.make_fields(names, [player], _SCENARIO, parse_settings(args.set), seeds)
    try:
        rows = named_ablations(field.config, args.without)
    except ConfigError as error:
        raise ConfigError(f"--without: {error}") from None
    with tournament.progress(args.battles * (1 + len(rows))) as show:
        card = make_card(
            player,
            opponent,
            field.config,
            seeds,
            scenario=field.name,
            rows=rows,
            seed=args.seed,
            num_threads=args.threads,
            on_battles=show,
        )
    try:  # print first, as the disk may be full; write in any case, as the pipe may be closed
        print(json.dumps(card, allow_nan=False) if args.json else format_card(card), flush=True)
    finally:
        if args.out:
            write_card(args.out, card)
    if args.out and not args.json:
        print(f"\nCard: {args.out}")
    return 0
