"""Suites: frozen sets of battles that make results comparable.

A suite lists scenarios, the seeds of their maps and opponents. It pins configurations and maps by hashes, and raises
`SuiteError` if those of the installed package differ. It does not pin the rules of the game and the behaviour of the
opponents: compare ``engine_hash`` and ``opponents_hash`` in the stamps of two results.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError, build, check_fields, check_integer, nearest_name
from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.players import BASELINES
from echelon_env.evaluate.seeds import EVALUATION_SEEDS, check_seeds, evaluation_seed
from echelon_env.evaluate.stamps import battle_hash, document_hash
from echelon_env.storage.reading import parse_json, read_regular_file
from echelon_env.terrain import generate

_SHIPPED = Path(__file__).parent / "suites"

SUITES = tuple(sorted(path.stem for path in _SHIPPED.glob("*.json")))
"""Names of the shipped suites."""

MAX_BYTES = 1 << 24
"""Of a file."""


class SuiteError(ConfigError):
    """An unknown or invalid suite, or configurations or maps that differ from the frozen ones."""


@dataclass(frozen=True)
class SuiteScenario:
    """A frozen scenario of a suite."""

    name: str  # name of a shipped scenario
    config_hash: str  # `battle_hash` of the configuration
    map_hashes: tuple[str, ...]  # content hashes of the maps, in the order of the seeds
    seeds: tuple[int, ...]  # seeds of the maps, in EVALUATION_SEEDS; each map is played from both sides


@dataclass(frozen=True)
class Suite:
    """A frozen set of battles: scenarios x maps x sides x opponents."""

    name: str
    scenarios: tuple[SuiteScenario, ...]
    opponents: tuple[str, ...]  # names in BASELINES, weakest first

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the suite's document as canonical JSON."""
        return document_hash(asdict(self))

    def scenario(self, name: str) -> SuiteScenario:
        """One of the suite's scenarios. Raises SuiteError for another name, with the nearest valid one."""
        named = {scenario.name: scenario for scenario in self.scenarios}
        if name not in named:
            raise SuiteError(f"suite {self.name}: unknown scenario {name!r}{nearest_name(name, named)}")
        return named[name]

    def config(self, name: str) -> BattleConfig:
        """The configuration of one of the suite's scenarios.

        Raises SuiteError for another name, and if the installed scenario differs from the frozen one.
        """
        scenario = self.scenario(name)
        config = make_config(name)
        found = battle_hash(config)
        if found != scenario.config_hash:
            raise SuiteError(
                f"suite {self.name}: scenario {name!r} differs from the frozen one: expected the configuration's "
                f"hash {scenario.config_hash}, got {found}"
            )
        return config

    def check_match(self, match: Match) -> None:
        """Raise SuiteError unless a match was played with the suite's configuration on the suite's maps.

        Its maps must be the first ones of the scenario, in order, with the same contents. Rules and opponents are not
        checked, see `echelon_env.evaluate.stamp`.
        """
        scenario = self.scenario(match.scenario)
        if match.config_hash != scenario.config_hash:
            raise SuiteError(
                f"suite {self.name}: the match was not played with the configuration of scenario {match.scenario!r}: "
                f"expected the hash {scenario.config_hash}, got {match.config_hash}"
            )
        played = {battle.seed: battle.map_hash for battle in match.battles}
        if tuple(played) != scenario.seeds[: len(played)]:
            raise SuiteError(f"suite {self.name}: the match's maps are not the first of scenario {match.scenario!r}")
        for battle in match.battles:
            frozen = scenario.map_hashes[scenario.seeds.index(battle.seed)]
            if battle.map_hash != frozen:
                raise SuiteError(
                    f"suite {self.name}: a map of scenario {match.scenario!r} differs from the frozen one: expected "
                    f"the hash {frozen} for the seed {battle.seed}, got {battle.map_hash}"
                )


def load_suite(name: str | os.PathLike[str]) -> Suite:
    """Load one of `SUITES`, or a suite from a JSON file (``dataclasses.asdict`` of a suite of `freeze_suite`).

    Raises SuiteError for an unknown name, with the nearest valid one, and for an invalid file, with the reason.

    >>> suite = load_suite("echelon-eval-v3")
    >>> [(scenario.name, len(scenario.seeds)) for scenario in suite.scenarios]
    [('duel', 100), ('skirmish', 100), ('battle', 100)]
    """
    path = Path(name)
    if name in SUITES:
        path = _SHIPPED / f"{name}.json"
    elif path.suffix != ".json":
        raise SuiteError(f"unknown suite {str(name)!r}{nearest_name(str(name), SUITES)}, and no .json file")
    try:
        return suite_from_dict(parse_json(read_regular_file(path, MAX_BYTES)))
    except OSError as error:
        raise SuiteError(f"suite {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise SuiteError(f"suite {path}: {error}") from None


def suite_from_dict(document: Mapping[str, Any]) -> Suite:
    """The inverse of `dataclasses.asdict` for a suite. Raises ValueError for an invalid document."""
    suite: Suite = build(Suite, document, "")
    check_fields(suite, "")
    _check_opponents(suite.opponents)
    _check_different("scenarios", [scenario.name for scenario in suite.scenarios])
    for scenario in suite.scenarios:
        check_seeds(scenario.seeds, EVALUATION_SEEDS)
        _check_different(f"scenario {scenario.name!r}: seeds", scenario.seeds)
        if len(scenario.seeds) != len(scenario.map_hashes):
            raise SuiteError(
                f"scenario {scenario.name!r}: expected a hash for each of the {len(scenario.seeds)} maps, "
                f"got {len(scenario.map_hashes)}"
            )
    return suite


def freeze_suite(name: str, scenarios: Sequence[str], opponents: Sequence[str], num_maps: int) -> Suite:
    """Freeze the current configurations of scenarios, with `num_maps` maps each. Generates every map.

    The seeds of the maps are derived from the names of suite and scenario, so that no other evaluation uses them by
    chance.

    Raises ConfigError for an unknown scenario or opponent, with the nearest valid one, or an invalid number.
    """
    check_integer("num_maps", num_maps)
    _check_opponents(opponents)
    _check_different("scenarios", scenarios)
    frozen = []
    for scenario in scenarios:
        config = make_config(scenario)
        own = int.from_bytes(hashlib.sha256(f"{name}/{scenario}".encode()).digest()[:8], "big")
        seeds = tuple(evaluation_seed(own, index) for index in range(num_maps))
        map_hashes = tuple(generate(config, seed).content_hash for seed in seeds)
        frozen.append(SuiteScenario(scenario, battle_hash(config), map_hashes, seeds))
    return Suite(name, tuple(frozen), tuple(opponents))


def _check_different(what: str, values: Sequence[str | int]) -> None:
    if not values:
        raise SuiteError(f"{what}: expected at least one")
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise SuiteError(f"{what}: expected different ones, got {twice[0]!r} twice")


def _check_opponents(opponents: Sequence[str]) -> None:
    _check_different("opponents", opponents)
    for name in opponents:
        if name not in BASELINES:
            raise SuiteError(f"unknown opponent {name!r}{nearest_name(name, BASELINES)}")
