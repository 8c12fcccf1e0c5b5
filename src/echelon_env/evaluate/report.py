"""Reports: the results of matches as a JSON document."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate.battle_totals import Sums, add_sums, sum_of
from echelon_env.evaluate.cross_play import cross_play
from echelon_env.evaluate.estimates import (
    CONFIDENCE,
    interquartile_mean,
    map_scores,
    probability_of_improvement,
    score_interval,
    stratified_bootstrap,
    wilson,
)
from echelon_env.evaluate.matches import Battle, Match
from echelon_env.evaluate.partners import partner_rows
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.suite import Suite
from echelon_env.evaluate.tables import format_report

__all__ = ["aggregate", "format_report", "make_report"]

FORMAT = "echelon-evaluation"
VERSION = 1

MIN_MAPS = 10
"""Minimum number of maps for the bootstrap of the interquartile mean, see `stratified_bootstrap`."""

Task = tuple[str, str]
"""(scenario, opponent)."""

Scores = dict[Task, NDArray[np.float64]]
"""A player's map scores (maps,) in each of its tasks."""


def make_report(
    matches: Sequence[Match],
    *,
    suite: Suite | None,
    stamp: Mapping[str, Any],
    players: Sequence[Player],
    configs: Mapping[str, BattleConfig] | None = None,
    partners: Sequence[Player] = (),
) -> dict[str, Any]:
    """Make a document of plain values from matches and their statistics, for JSON.

    docs/reference/statistics.md lists its keys. Shares and scores are numbers from 0 to 1. The score of a map is the
    mean over its two battles of 1 for a win, 0.5 for a draw and 0 for a loss. The evaluated players are `players`; all
    others in the matches are opponents only. The document includes the `stamp`, see `echelon_env.evaluate.stamp`, and
    the `configs` of the scenarios. With `partners` the players are the `teams_beside` of the first one and its
    partners, and each match is one of these against another player.

    Raises ValueError for no matches or players, two matches of a pairing in a scenario, two players with the same name,
    and a player without a match; SuiteError for a match that was not played on the maps of the `suite`, if given.
    """
    _check(matches, players)
    if suite is not None:
        for match in matches:
            suite.check_match(match)
    names = [player.name for player in players]
    scores = {name: _scores(matches, name) for name in names}
    all_names = {name for match in matches for name in (match.first, match.second)}
    return {
        "format": FORMAT,
        "version": VERSION,
        "stamp": dict(stamp),
        "suite": None if suite is None else _suite(suite, matches, names),
        "confidence": CONFIDENCE,
        "scenarios": _scenarios(matches, configs or {}),
        "players": [_player(player, matches) for player in players],
        "opponents": sorted(all_names - set(names)),
        "matches": [_match(match) for match in matches],
        "bad_actions": {name: _bad_actions(matches, name) for name in sorted(all_names)},
        "aggregate": {name: aggregate(matches, name) for name in names},
        "probability_of_improvement": _improvements(scores),
        "cross_play": cross_play(matches),
        "partners": partner_rows(matches, players[0], partners),
        "classes": {name: _classes(matches, name) for name in names},
    }


def aggregate(matches: Sequence[Match], player: str) -> dict[str, Any]:
    """A player's mean score and interquartile mean over the maps of all scenarios, the entry of a report's `aggregate`.

    The score of a map is the mean over the player's opponents, and over several matches against the same one.
    """
    played = [*_played(matches, player)]
    scores: dict[str, dict[int, list[float]]] = {}  # scenario -> seed of a map -> scores against the opponents
    for match, place, _ in played:
        for battle, score in zip(match.battles[::2], _map_scores(match, place), strict=True):
            scores.setdefault(match.scenario, {}).setdefault(battle.seed, []).append(score)
    strata = {name: np.array([np.mean(of_map) for of_map in by_map.values()]) for name, by_map in scores.items()}
    return {
        "opponents": list(dict.fromkeys(rival for _, _, rival in played)),
        "maps": len({battle.map_hash for match, _, _ in played for battle in match.battles}),
        **mean_scores([strata], {name: tuple(by_map) for name, by_map in scores.items()}),
    }


def mean_scores(runs: Sequence[Mapping[str, NDArray[np.float64]]], maps: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Means over runs of the mean score and of the interquartile mean, with intervals over the maps, which runs share.

    Each run has the scores (maps,) in each scenario; `maps` are the seeds of each scenario's maps.
    """
    mean = score_interval({name: np.mean([run[name] for run in runs], axis=0) for name in maps}, maps=maps)
    estimates = [float(interquartile_mean(np.concatenate([*run.values()]))) for run in runs]
    iqm: dict[str, float | None] = {"estimate": float(np.mean(estimates)), "low": None, "high": None}
    if len(set().union(*maps.values())) >= MIN_MAPS:

        def mean_of_runs(values: NDArray[np.float64], axis: int) -> Any:  # of all runs' maps, run by run
            return interquartile_mean(values.reshape(*values.shape[:-1], len(runs), -1)).mean(axis=axis)

        strata = {(number, name): run[name] for number, run in enumerate(runs) for name in maps}
        of_strata = {key: maps[key[1]] for key in strata}  # so all runs get the same draws of maps
        iqm |= asdict(stratified_bootstrap(strata, mean_of_runs, maps=of_strata))
    return {"mean": asdict(mean), "iqm": iqm}


def _check(matches: Sequence[Match], players: Sequence[Player]) -> None:
    if not matches or not players:
        raise ValueError(f"expected at least one match and one player, got {len(matches)} and {len(players)}")
    pairings = [(match.scenario, *sorted((match.first, match.second))) for match in matches]
    for scenario, first, second in pairings:
        if pairings.count((scenario, first, second)) > 1:
            raise ValueError(f"expected one match of a pairing, got two of {first!r} and {second!r} in {scenario!r}")
    names = [player.name for player in players]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"expected players of different names, got {name!r} twice")
        if not any(name in pairing[1:] for pairing in pairings):
            raise ValueError(f"player {name!r} is in none of the matches")


def _played(matches: Iterable[Match], player: str) -> Iterator[tuple[Match, int, str]]:
    """A player's matches, each with its place (0 or 1) and its opponent. A match against itself is yielded once."""
    for match in matches:
        if match.first == player:
            yield match, 0, match.second
        elif match.second == player:
            yield match, 1, match.first


def _scores(matches: Iterable[Match], player: str) -> Scores:
    return {(match.scenario, rival): _map_scores(match, place) for match, place, rival in _played(matches, player)}


def _map_scores(match: Match, place: int) -> NDArray[np.float64]:
    """Map scores (maps,) of the first player (`place` 0) or of the second (1)."""
    return map_scores(match) if place == 0 else 1.0 - map_scores(match)


def _suite(suite: Suite, matches: Iterable[Match], names: Sequence[str]) -> dict[str, Any]:
    seeds = {
        (name, match.scenario, rival): tuple(battle.seed for battle in match.battles[::2])
        for name in names
        for match, _, rival in _played(matches, name)
    }
    complete = all(
        seeds.get((name, scenario.name, rival)) == scenario.seeds
        for name in names
        for scenario in suite.scenarios
        for rival in suite.opponents
        if name != rival
    )
    return {"name": suite.name, "hash": suite.hash, "complete": complete}


def _scenarios(matches: Iterable[Match], configs: Mapping[str, BattleConfig]) -> dict[str, Any]:
    maps: dict[str, dict[int, str]] = {}
    for match in matches:
        maps.setdefault(match.scenario, {}).update((battle.seed, battle.map_hash) for battle in match.battles)
    return {
        name: {
            "maps": len(hashes),
            "seeds": list(hashes),
            "map_hashes": list(hashes.values()),
            "config": configs[name].to_dict() if name in configs else None,
        }
        for name, hashes in maps.items()
    }


def _player(player: Player, matches: Iterable[Match]) -> dict[str, Any]:
    played = {battle.map_hash for match, _, _ in _played(matches, player.name) for battle in match.battles}
    trained = player.trained_maps
    return {
        "name": player.name,
        "identity": dict(player.identity),
        "action_mode": player.action_mode,
        "maps": len(played),
        "maps_trained_on": None if trained is None else len(played & trained),
        "trained_maps": None if trained is None else len(trained),
    }


def _match(match: Match) -> dict[str, Any]:
    shares = {"win": match.wins, "draw": match.draws, "loss": match.losses}
    return {
        "scenario": match.scenario,
        "first": match.first,
        "second": match.second,
        "action_modes": list(match.action_modes),
        **{name: {"count": n, **asdict(wilson(n, len(match.battles)))} for name, n in shares.items()},
        "score": asdict(score_interval({match.scenario: map_scores(match)})),
        "battles": {field.name: [getattr(battle, field.name) for battle in match.battles] for field in fields(Battle)},
        "classes": [{name: dict(counts) for name, counts in classes.items()} for classes in match.classes],
    }


def _improvements(scores: Mapping[str, Scores]) -> list[dict[str, Any]]:
    """Probabilities of improvement of all pairs of players with common tasks, over these tasks."""
    pairs = []
    for player, other in itertools.combinations(scores, 2):
        common = [task for task in scores[player] if task in scores[other]]
        if common:
            x, y = ({task: scores[name][task] for task in common} for name in (player, other))
            pairs.append(
                {
                    "player": player,
                    "over": other,
                    "tasks": [*map(list, common)],
                    **asdict(probability_of_improvement(x, y)),
                }
            )
    return pairs


def _classes(matches: Iterable[Match], player: str) -> dict[str, Sums]:
    """Sums over a player's battles, by mech class."""
    classes: dict[str, Sums] = {}
    for match, place, _ in _played(matches, player):
        for mech_class, sums in match.classes[place].items():
            add_sums(classes.setdefault(mech_class, {}), sums)
    return classes


def _bad_actions(matches: Iterable[Match], player: str) -> int:
    """A player's bad actions in all battles."""
    return round(sum_of(_classes(matches, player).values()).get("bad_actions", 0.0))
