"""Metrics of the last training battles: why they are won and lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.battle_totals import Sums, add_sums, by_weapon, measures, parts_of, ratio, sum_of
from echelon_env.evaluate.statistics_file import MAX_CLASSES, sums_from_dict, sums_to_dict
from echelon_env.layout.measures import MEASURES

DECAY = 0.99
"""Weight of a battle relative to the next one: the metrics are means over about the last 100 battles."""

MAX_OPPONENTS = 8
"""Opponents with metrics: those that were played last."""

_NEGLIGIBLE = 1e-9  # a decayed sum below it is 0

OF_ALL = tuple(each.name for each in MEASURES if each.chart)
"""The measures of all mechs that are metrics."""

MAIN = tuple(each.name for each in MEASURES if each.main)
"""The measures of a mech class, against an opponent, and in an evaluation that are metrics."""


class RecentBattles:
    """Sums over the own mechs in the last battles, whose weights decay by `DECAY` with every battle.

    Sums by class decay with every battle, those by opponent with every battle against it.
    """

    def __init__(self) -> None:
        self._classes: dict[str, Sums] = {}
        self._opponents: dict[str, Sums] = {}  # the one that was played last is the last one

    def add(self, opponent: str, classes: Mapping[str, Sums]) -> None:
        """Add a battle against an opponent, given as the sums over the own mechs of each class."""
        for name in list(self._classes):
            self._classes[name] = _decayed(self._classes[name])
        for name, sums in classes.items():
            add_sums(self._classes.setdefault(name, {}), sums)
        self._opponents[opponent] = _decayed(self._opponents.pop(opponent, {}))
        add_sums(self._opponents[opponent], sum_of(classes.values()))
        if len(self._opponents) > MAX_OPPONENTS:
            del self._opponents[next(iter(self._opponents))]

    def metrics(self) -> dict[str, float]:
        """The metrics by name; those without a value are left out."""
        total = sum_of(self._classes.values())
        found = chosen_measures("battle", OF_ALL, total)
        if not found:
            return {}
        for component in REWARD_COMPONENTS:
            found[f"battle/reward/{component}"] = total.get(f"reward/{component}", 0.0) / total["mechs"]
        for weapon, sums in by_weapon(total).items():
            found[f"battle/weapon/{weapon}/damage"] = sums["damage"] / total["mechs"]
            found[f"battle/weapon/{weapon}/accuracy"] = ratio(sums, "hits", "shots")
        for cause, deaths in parts_of(total, "death").items():
            found[f"battle/death/{cause}"] = deaths / total["deaths"]
        for condition in ("shut_down", "fallen"):
            found[f"battle/death/while_{condition}"] = ratio(total, f"deaths_{condition}", "deaths")
        if len(self._classes) > 1:
            for name, sums in self._classes.items():
                found |= chosen_measures(f"battle/class/{name}", MAIN, sums)
        for name, sums in self._opponents.items():
            found |= chosen_measures(f"opponent/{name}", MAIN, sums)
        return {name: value for name, value in found.items() if value is not None}

    def state_dict(self) -> dict[str, Any]:
        """The sums as plain values for JSON."""
        parts = {"classes": self._classes, "opponents": self._opponents}
        return {
            part: {name: sums_to_dict(sums, exact) for name, sums in groups.items()} for part, groups in parts.items()
        }

    def load_state_dict(self, state: Any) -> None:
        """Restore a `state_dict`. Raises `ConfigError`, with nothing changed, for an invalid one."""
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys():
            raise ConfigError(f"recent battles: expected a mapping with the keys {list(self.state_dict())}")
        parts: list[dict[str, Sums]] = []
        for part, most in (("classes", MAX_CLASSES), ("opponents", MAX_OPPONENTS)):
            given = state[part]
            if not isinstance(given, Mapping) or len(given) > most:
                raise ConfigError(f"recent battles: {part}: expected a mapping of at most {most} names")
            parts.append({name: sums_from_dict(f"recent battles: {part}", sums) for name, sums in given.items()})
        self._classes, self._opponents = parts


def exact(array: Any) -> Any:
    """The numbers of an array as they are, for `sums_to_dict`."""
    return array.tolist()


def _decayed(sums: Sums) -> Sums:
    return {name: value * DECAY for name, value in sums.items() if abs(value) > _NEGLIGIBLE}


def chosen_measures(prefix: str, names: tuple[str, ...], sums: Sums) -> dict[str, float | None]:
    """The chosen measures under a prefix, without those that have no value."""
    found = measures(sums)
    return {f"{prefix}/{name}": found[name] for name in names if found[name] is not None}
