"""The battles of a policy on the suite, and what is stored of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks import machine
from echelon_env.evaluate import Player, baseline, load_suite, play_match, stamp
from echelon_env.evaluate.stamps import document_hash

LETTERS = {1: "W", 0: "D", -1: "L"}
"""Outcomes of battles as they are stored."""


def judge(player: Player, suite_name: str, scenarios: Iterable[str]) -> dict[str, Any]:
    """Play the suite's battles of some scenarios, also of a player against itself: suite, stamp and all outcomes."""
    suite = load_suite(suite_name)
    outcomes: dict[str, dict[str, str]] = {}
    for name in scenarios:
        config, seeds = suite.config(name), suite.scenario(name).seeds
        outcomes[name] = {}
        for opponent in suite.opponents:
            match = play_match(player, baseline(opponent), config, seeds, scenario=name)
            suite.check_match(match)
            outcomes[name][opponent] = "".join(LETTERS[battle.outcome] for battle in match.battles)
    return judged(suite_name, outcomes)


def judged(suite_name: str | None, outcomes: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """What a row says of its battles: the suite whose maps they have, if any, the stamp, the outcomes by scenario."""
    return {**conditions(suite_name), "package": stamp()["package"], "outcomes": outcomes}


def conditions(suite_name: str | None) -> dict[str, str | None]:
    """What has to be equal in rows that are compared: the suite, if any, the rules and the opponents."""
    hashes = stamp()
    return {
        "suite": suite_name,
        "suite_hash": None if suite_name is None else load_suite(suite_name).hash,
        **{name: hashes[name] for name in ("engine_hash", "opponents_hash")},
    }


def current(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of the installed suites, rules and opponents."""
    now: dict[str | None, dict[str, str | None]] = {}
    kept = []
    for row in rows:
        name = row["suite"]
        if name not in now:
            now[name] = conditions(name)
        if all(row[key] == value for key, value in now[name].items()):
            kept.append(row)
    return kept


def sealed(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its hash, which `read` of the results checks."""
    body = {name: value for name, value in row.items() if name != "hash"}
    return {**body, "hash": document_hash(body)}


def where() -> dict[str, Any]:
    """The machine and the commit of a row."""
    found = machine.describe()
    return {name: found[name] for name in ("processor", "python", "commit", "date")}
