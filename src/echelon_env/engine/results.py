"""What has become of an engine's battles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import STATISTIC_NAMES, STATISTICS, Outputs, State


class BattleResults:
    """The results of B battles so far and of their last decision: new arrays, except `reward_components`."""

    config: BattleConfig
    state: State
    """Its arrays change, but another state has no effect."""
    out: Outputs

    @property
    def alive(self) -> NDArray[np.bool_]:
        """(B, M) bool: whether each mech is alive."""
        return np.array(self.state.mechs["alive"], np.bool_)

    @property
    def battle_over(self) -> NDArray[np.bool_]:
        """(B,) bool: whether each battle is over."""
        return np.array(self.state.battles["over"], np.bool_)

    @property
    def winner(self) -> NDArray[np.int8]:
        """(B,) int8: 0 blue, 1 red, -1 draw; valid where `battle_over`."""
        return np.array(self.state.battles["winner"])

    @property
    def reason(self) -> NDArray[np.int8]:
        """(B,) int8: why each battle is over, an index into `echelon_env.engine.state.REASONS`."""
        return np.array(self.state.battles["reason"])

    @property
    def bad_actions(self) -> NDArray[np.int32]:
        """(B, M) int32: non-finite action entries in the last step."""
        return np.array(self.state.mechs["bad_actions"])

    def events(self, battle: int = 0) -> NDArray[Any]:
        """(E,) EVENT records (see `echelon_env.engine.state`): what happened in a battle's last decision, in order."""
        return np.array(self.state.events[battle, : self.state.battles["num_events"][battle]])

    @property
    def statistics(self) -> NDArray[Any]:
        """(B, M) STATISTICS records of each mech in its battle so far."""
        return np.array(self.state.statistics)

    @property
    def team_statistics(self) -> NDArray[Any]:
        """(B, 2) STATISTICS records: the sums of `statistics` over blue and over red."""
        blue = len(self.config.blue)
        totals = np.zeros((len(self.state.statistics), 2), STATISTICS)
        for name in STATISTIC_NAMES:
            for team, mechs in enumerate((slice(blue), slice(blue, None))):
                totals[name][:, team] = self.state.statistics[name][:, mechs].sum(axis=1)
        return totals

    @property
    def shots(self) -> NDArray[np.int32]:
        """(B, M, W) int32: shots in the battle so far, by mech and weapon of the catalogue."""
        return np.array(self.state.shots)

    @property
    def hits(self) -> NDArray[np.int32]:
        """(B, M, W) int32: direct hits in the battle so far, by mech and weapon of the catalogue."""
        return np.array(self.state.hits)

    @property
    def reward_components(self) -> NDArray[np.float32]:
        """(B, M, K) float32: the last step's reward by component, in the order of `config.REWARD_COMPONENTS`."""
        return self.out.components
