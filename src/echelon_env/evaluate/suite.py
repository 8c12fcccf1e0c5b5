"""Suites: frozen sets of battles that results can be compared on, wherever and whenever they were played.

A suite names its scenarios, the seeds of their maps and the opponents, and pins configurations and maps by hashes:
where this version of the package would play other battles under the suite's name, it refuses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from echelon_env.config import BattleConfig
from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.seeds import EVALUATION_SEEDS, check_seeds, evaluation_seed
from echelon_env.scenario import make_config
from echelon_env.schema import ConfigError, check_integer, nearest_name
from echelon_env.terrain import generate

_SHIPPED = Path(__file__).parent / "suites"

SUITES = tuple(sorted(path.stem for path in _SHIPPED.glob("*.json")))
"""The suites that come with the package."""


class SuiteError(ConfigError):
    """A suite that is unknown, or whose battles this version of the package would play otherwise."""


@dataclass(frozen=True)
class SuiteScenario:
    """A scenario as a suite froze it."""

    name: str  # of a scenario that comes with the package
    config_hash: str  # SHA-256 of the configuration as canonical JSON
    maps_hash: str  # SHA-256 over the content hashes of the seeds' maps, in their order
    seeds: tuple[int, ...]  # of the maps, in EVALUATION_SEEDS; each is played from both sides


@dataclass(frozen=True)
class Suite:
    """A frozen set of battles: scenarios x maps x sides x opponents."""

    name: str
    scenarios: tuple[SuiteScenario, ...]
    opponents: tuple[str, ...]  # scripted levels, weakest first

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the suite's document as canonical JSON."""
        return _hash_json(asdict(self))

    def scenario(self, name: str) -> SuiteScenario:
        """One of the suite's scenarios. Raises SuiteError for another name, with the nearest valid one."""
        for scenario in self.scenarios:
            if scenario.name == name:
                return scenario
        raise SuiteError(f"suite {self.name}: unknown scenario {name!r}{nearest_name(name, self._names)}")

    def config(self, name: str) -> BattleConfig:
        """The configuration of one of the suite's scenarios.

        Raises SuiteError for another name, and where the package's scenario is not the frozen one.
        """
        scenario = self.scenario(name)
        config = make_config(name)
        found = _hash_json(config.to_dict())
        if found != scenario.config_hash:
            raise SuiteError(
                f"suite {self.name}: scenario {name!r} is not the one that was frozen: expected the configuration's "
                f"hash {scenario.config_hash}, got {found}"
            )
        return config

    def check_match(self, match: Match) -> None:
        """Raise SuiteError unless a match was played on the suite's maps.

        Its maps must be the scenario's first ones, in order; their contents are compared where it has all of them.
        """
        scenario = self.scenario(match.scenario)
        played = {battle.seed: battle.map_hash for battle in match.battles}
        if tuple(played) != scenario.seeds[: len(played)]:
            raise SuiteError(f"suite {self.name}: the match's maps are not the first of scenario {match.scenario!r}")
        found = _hash_maps(tuple(played.values()))
        if len(played) == len(scenario.seeds) and found != scenario.maps_hash:
            raise SuiteError(
                f"suite {self.name}: the maps of scenario {match.scenario!r} are not those that were frozen: expected "
                f"the hash {scenario.maps_hash}, got {found}"
            )

    @property
    def _names(self) -> list[str]:
        return [scenario.name for scenario in self.scenarios]


@cache
def load_suite(name: str) -> Suite:
    """One of `SUITES`. Raises SuiteError for another name, with the nearest valid one.

    >>> suite = load_suite("echelon-eval-v1")
    >>> [(scenario.name, len(scenario.seeds)) for scenario in suite.scenarios]
    [('duel', 100), ('skirmish', 100), ('battle', 100)]
    """
    if name not in SUITES:
        raise SuiteError(f"unknown suite {name!r}{nearest_name(name, SUITES)}")
    return suite_from_dict(json.loads((_SHIPPED / f"{name}.json").read_text(encoding="utf-8")))


def suite_from_dict(document: dict[str, Any]) -> Suite:
    """The inverse of `dataclasses.asdict` for a suite."""
    scenarios = tuple(
        SuiteScenario(**{**scenario, "seeds": tuple(scenario["seeds"])}) for scenario in document["scenarios"]
    )
    suite = Suite(document["name"], scenarios, tuple(document["opponents"]))
    for scenario in scenarios:
        check_seeds(scenario.seeds, EVALUATION_SEEDS)
    return suite


def freeze_suite(name: str, scenarios: Sequence[str], opponents: Sequence[str], num_maps: int) -> Suite:
    """Freeze scenarios as they are now, with `num_maps` maps each; makes every map.

    The maps' seeds follow from the names, so that no evaluation with a seed of its own meets them by chance.

    Raises ConfigError for an unknown scenario or an impossible number.
    """
    check_integer("num_maps", num_maps)
    frozen = []
    for scenario in scenarios:
        config = make_config(scenario)
        own = int.from_bytes(hashlib.sha256(f"{name}/{scenario}".encode()).digest()[:8], "big")
        seeds = tuple(evaluation_seed(own, index) for index in range(num_maps))
        maps_hash = _hash_maps(tuple(generate(config, seed).content_hash for seed in seeds))
        frozen.append(SuiteScenario(scenario, _hash_json(config.to_dict()), maps_hash, seeds))
    return Suite(name, tuple(frozen), tuple(opponents))


def _hash_json(document: Any) -> str:
    """SHA-256 of plain data as JSON without spaces, keys sorted, ASCII."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _hash_maps(content_hashes: Sequence[str]) -> str:
    return hashlib.sha256("".join(content_hashes).encode()).hexdigest()
