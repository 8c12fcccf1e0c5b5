"""Schedules of the rewards during a run."""

from __future__ import annotations

import dataclasses
from typing import Any

from echelon_env.config.battle import REWARD_COMPONENTS, RewardConfig
from echelon_env.config.schedule import Schedule

__all__ = ["RewardSchedules", "Schedule"]


def _reward_field(name: str) -> Any:
    """Declare a field for the schedule of a reward setting; None, the default, keeps the setting constant."""
    meaning = _REWARDS[name].metadata.get("help") or name.replace("_", " ")
    return dataclasses.field(default=None, metadata={"help": f"schedule of the {meaning}"})


_REWARDS = {each.name: each for each in dataclasses.fields(RewardConfig)}
_RewardFields: Any = dataclasses.make_dataclass(
    "_RewardFields",
    [(name, Schedule | None, _reward_field(name)) for name in (*REWARD_COMPONENTS, "team_spirit")],
    frozen=True,
    kw_only=True,
)


class RewardSchedules(_RewardFields):  # type: ignore[misc]
    """Schedules of reward settings; they replace those of the battle's `RewardConfig` during a run.

    A dataclass with one field for the weight of each reward component, and one for ``team_spirit``. A field is a
    `Schedule`, or None for a constant setting.
    """

    def at(self, rewards: RewardConfig, remaining: float) -> RewardConfig:
        """The reward settings when a share `remaining` of the run is left. Raises `ConfigError` for invalid values."""
        schedules = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        changes = {name: schedule(remaining) for name, schedule in schedules.items() if schedule is not None}
        return dataclasses.replace(rewards, **changes)
