"""Synthetic matches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate.matches import Battle, Match
from echelon_env.evaluate.seeds import evaluation_seed


def made_match(
    first: str, second: str, outcomes: Iterable[tuple[int, int]], *, scenario: str = "duel", maps: int = 0
) -> Match:
    """A match with the given outcomes of both sides of each map, on maps from number `maps` on."""
    battles = tuple(
        Battle(
            number=2 * number + side,
            seed=evaluation_seed(0, maps + number),
            map_hash=f"{maps + number:064x}",
            side=side,
            outcome=outcome,
            reason="zone_control" if outcome else "time_limit",
            seconds=60.0,
            scores=(30.0, 10.0),
            survivors=(1, 0),
        )
        for number, pair in enumerate(outcomes)
        for side, outcome in enumerate(pair)
    )
    return Match(scenario, first, second, ("scripted", "scripted"), battles, ({}, {}))


def hash_of(config: BattleConfig) -> str:
    """The SHA-256 of a battle with all abilities and without later settings: its fields but the rewards, as JSON."""
    document = {key: value for key, value in config.to_dict().items() if key not in ("rewards", "abilities")}
    del document["zone"]["shown_seconds"]
    for mech_class in document["catalog"]["mech_classes"]:
        del mech_class["observes_zone"]
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
