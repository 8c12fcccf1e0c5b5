"""Suites: frozen sets of battles that results can be compared on, wherever and whenever they were played.

A suite names its scenarios, the seeds of their maps and the opponents, and pins configurations and maps by hashes:
where this version of the package has others, it refuses. The rules of the game and what the opponents do are not
pinned: the stamp's ``engine_hash`` and ``opponents_hash`` tell whether two results have them in common.
"""

from __future__ import annotations

import hashlib
import json
import os
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
from echelon_env.terrain import generate

_SHIPPED = Path(__file__).parent / "suites"

SUITES = tuple(sorted(path.stem for path in _SHIPPED.glob("*.json")))
"""The suites that come with the package."""


class SuiteError(ConfigError):
    """A suite that is unknown or damaged, or whose configurations or maps are not those that were played."""


@dataclass(frozen=True)
class SuiteScenario:
    """A scenario as a suite froze it."""

    name: str  # of a scenario that comes with the package
    config_hash: str  # SHA-256 of the configuration, but for the rewards, as canonical JSON
    map_hashes: tuple[str, ...]  # content hashes of the seeds' maps, in their order
    seeds: tuple[int, ...]  # of the maps, in EVALUATION_SEEDS; each is played from both sides


@dataclass(frozen=True)
class Suite:
    """A frozen set of battles: scenarios x maps x sides x opponents."""

    name: str
    scenarios: tuple[SuiteScenario, ...]
    opponents: tuple[str, ...]  # of BASELINES, weakest first

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the suite's document as canonical JSON."""
        return document_hash(asdict(self))

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
        found = battle_hash(config)
        if found != scenario.config_hash:
            raise SuiteError(
                f"suite {self.name}: scenario {name!r} is not the one that was frozen: expected the configuration's "
                f"hash {scenario.config_hash}, got {found}"
            )
        return config

    def check_match(self, match: Match) -> None:
        """Raise SuiteError unless a match was played with the suite's configuration on the suite's maps.

        Its maps must be the scenario's first ones, in order, and have the same contents. Rules and opponents are not
        the suite's to check, see `echelon_env.evaluate.stamp`.
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
                    f"suite {self.name}: a map of scenario {match.scenario!r} is not the one that was frozen: expected "
                    f"the hash {frozen} for the seed {battle.seed}, got {battle.map_hash}"
                )

    @property
    def _names(self) -> list[str]:
        return [scenario.name for scenario in self.scenarios]


def load_suite(name: str | os.PathLike[str]) -> Suite:
    """One of `SUITES`, or the suite in a JSON file: what ``dataclasses.asdict`` gives for a suite of `freeze_suite`.

    Raises SuiteError for another name, with the nearest valid one, and for a file that holds no suite, with the reason.

    >>> suite = load_suite("echelon-eval-v1")
    >>> [(scenario.name, len(scenario.seeds)) for scenario in suite.scenarios]
    [('duel', 100), ('skirmish', 100), ('battle', 100)]
    """
    path = Path(name)
    if name in SUITES:
        path = _SHIPPED / f"{name}.json"
    elif path.suffix != ".json":
        raise SuiteError(f"unknown suite {str(name)!r}{nearest_name(str(name), SUITES)}, and no .json file")
    try:
        return suite_from_dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SuiteError(f"suite {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"suite {path}: {error}") from None


def suite_from_dict(document: Mapping[str, Any]) -> Suite:
    """The inverse of `dataclasses.asdict` for a suite. Raises ValueError for what is none."""
    suite: Suite = build(Suite, document, "")
    check_fields(suite, "")
    _check_opponents(suite.opponents)
    for scenario in suite.scenarios:
        check_seeds(scenario.seeds, EVALUATION_SEEDS)
        if len(scenario.seeds) != len(scenario.map_hashes):
            raise SuiteError(
                f"scenario {scenario.name!r}: expected a hash for each of the {len(scenario.seeds)} maps, "
                f"got {len(scenario.map_hashes)}"
            )
    return suite


def freeze_suite(name: str, scenarios: Sequence[str], opponents: Sequence[str], num_maps: int) -> Suite:
    """Freeze scenarios as they are now, with `num_maps` maps each; makes every map.

    The maps' seeds follow from the names, so that no evaluation with another seed uses them by chance.

    Raises ConfigError for an unknown scenario or opponent, with the nearest valid one, or an impossible number.
    """
    check_integer("num_maps", num_maps)
    _check_opponents(opponents)
    frozen = []
    for scenario in scenarios:
        config = make_config(scenario)
        own = int.from_bytes(hashlib.sha256(f"{name}/{scenario}".encode()).digest()[:8], "big")
        seeds = tuple(evaluation_seed(own, index) for index in range(num_maps))
        map_hashes = tuple(generate(config, seed).content_hash for seed in seeds)
        frozen.append(SuiteScenario(scenario, battle_hash(config), map_hashes, seeds))
    return Suite(name, tuple(frozen), tuple(opponents))


def _check_opponents(opponents: Sequence[str]) -> None:
    for name in opponents:
        if name not in BASELINES:
            raise SuiteError(f"unknown opponent {name!r}{nearest_name(name, BASELINES)}")
