"""Metrics of the last training battles: why they are won and lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.evaluate.battle_totals import Sums, add_sums, by_weapon, measures, parts_of, ratio, sum_of
from echelon_env.layout.measures import MEASURES

DECAY = 0.99
"""Weight of a battle relative to the next one."""
RECENT = "about the last 100 battles"
"""What means with these weights are of."""

MAX_OPPONENTS = 8
"""Opponents with metrics: those that were played last."""

_NEGLIGIBLE = 1e-9  # a decayed sum below it is 0

OF_ALL = tuple(each.name for each in MEASURES if each.chart)
"""The measures of all mechs that are metrics."""

MAIN = tuple(each.name for each in MEASURES if each.main)
"""The measures of a mech class, against an opponent, and in an evaluation that are metrics."""


@dataclass
class RecentBattles:
    """Sums over the own mechs in the last battles, whose weights decay by `DECAY` with every battle.

    Sums by class decay with every battle, those by opponent with every battle against it. The fields are its complete
    state.
    """

    # rewards may be negative
    classes: dict[str, Sums] = field(default_factory=dict, metadata={"low": -math.inf})
    opponents: dict[str, Sums] = field(default_factory=dict, metadata={"low": -math.inf})
    """The one that was played last is the last one."""

    def add(self, opponent: str, classes: Mapping[str, Sums]) -> None:
        """Add a battle against an opponent, given as the sums over the own mechs of each class."""
        for name in dict.fromkeys([*self.classes, *classes]):
            self.classes[name] = added(self.classes.get(name, {}), classes.get(name, {}))
        self.opponents[opponent] = added(self.opponents.pop(opponent, {}), sum_of(classes.values()))
        if len(self.opponents) > MAX_OPPONENTS:
            del self.opponents[next(iter(self.opponents))]

    def metrics(self) -> dict[str, float]:
        """The metrics by name; those without a value are left out."""
        total = sum_of(self.classes.values())
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
        if len(self.classes) > 1:
            for name, sums in self.classes.items():
                found |= chosen_measures(f"battle/class/{name}", MAIN, sums)
        for name, sums in self.opponents.items():
            found |= chosen_measures(f"opponent/{name}", MAIN, sums)
        return {name: value for name, value in found.items() if value is not None}


def added(sums: Mapping[str, float], battle: Mapping[str, float]) -> Sums:
    """The sums with those of another battle; the earlier ones decay. A new dict."""
    found = {name: value * DECAY for name, value in sums.items() if abs(value) > _NEGLIGIBLE}
    add_sums(found, battle)
    return found


def chosen_measures(prefix: str, names: tuple[str, ...], sums: Sums) -> dict[str, float | None]:
    """The chosen measures under a prefix, without those that have no value."""
    found = measures(sums)
    return {f"{prefix}/{name}": found[name] for name in names if found[name] is not None}
