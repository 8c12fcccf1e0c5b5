"""What environments report about their agents after a decision. An agent is one mech, or all mechs of a learner.

One kernel writes everything into one record array, so that no environment class computes sums and flags with NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.engine.kernels import Row, entry_point, integer, kernel
from echelon_env.engine.state import DRAW, STATISTICS, Outputs, State, record_dtype

STATISTIC_NAMES = (
    "damage", "friendly_damage", "damage_taken", "kills", "assists", "paints", "interceptions", "falls", "shutdowns",
    "deaths", "bad_actions",
)  # fmt: skip
"""The fields of STATISTICS in the order in which `_add_statistics` reads them."""

assert tuple(name for name in STATISTICS.names or () if not name.startswith("gap_")) == STATISTIC_NAMES

EPISODE_STATISTICS = ("r", "l", *STATISTIC_NAMES)
"""Names of the entries of the field `statistics` of AGENT: the return, the decisions, the statistics of the battle."""

NO_LIMIT = 2**62
"""Decisions that no battle reaches."""

EPISODE = record_dtype(
    [
        ("total", "f8"),  # return so far
        ("length", "i8"),  # decisions so far
        ("present", "?"),  # whether the agent's episode goes on
    ]
)
"""The course of an agent's episode, which environments keep between decisions."""

AGENT = record_dtype(
    [
        ("statistics", "f8", (len(EPISODE_STATISTICS),)),  # of the episode so far, sums over the agent's mechs
        ("own_share", "f8"),  # of the zone in the last decision, 0..1
        ("enemy_share", "f8"),
        ("own_score", "f8"),  # s of zone control
        ("enemy_score", "f8"),
        ("map_seed", "u8"),
        ("alive", "i8"),  # living mechs
        ("outcome", "i8"),  # 1 for a win, 0 for a draw, -1 for a loss; 0 until the battle is over
        ("bad_actions", "i4"),  # non-finite entries in the last actions
        ("components", "f4", (len(REWARD_COMPONENTS),)),  # of the reward, means over the agent's mechs
        ("reward", "f4"),  # their sum, in order
        ("reason", "i1"),  # an index into REASONS once the battle is over, else 0
        ("terminated", "?"),  # in this decision
        ("truncated", "?"),  # in this decision, never together with `terminated`
        ("present", "?"),  # whether the agent's episode goes on after this decision
        ("living", "?"),  # whether a mech is alive
        ("valid", "?"),  # True; environments change it for battles that an info does not cover
    ]
)
"""The report about an agent."""

ENDS, OVER = integer(0), integer(1)
"""What `report_agents` counts: agents whose episodes end in this decision, and battles that are over."""


class Agents:
    """The agents of B battles, `a` in each, and the course of their episodes.

    Parameters
    ----------
    rows
        (B, n) int64: the agents' mechs, those of the first agent first. All agents have n / a of them.
    count
        Number of agents a of a battle.
    """

    def __init__(self, rows: NDArray[np.int64], count: int) -> None:
        self._rows = rows
        self.episodes = np.zeros((len(rows), count), EPISODE)
        """(B, a) EPISODE."""
        self.done = np.zeros(len(rows), np.bool_)
        """(B,) bool: battles without an agent whose episode goes on, as of the last report."""
        self.ends = self.over = 0
        """Agents whose episodes ended in the decision of the last report, and battles that were over."""
        self._counts = np.zeros(2, np.int64)
        self._reports = np.zeros((len(rows), count, AGENT.itemsize), np.uint8)  # NumPy copies bytes faster than records
        self._bound: tuple[Any, Any, Any] = None, None, None

    def start(self, battles: NDArray[np.bool_]) -> None:
        """Start the episodes of the agents of some battles (B,)."""
        self.episodes[battles] = 0
        self.episodes["present"][battles] = True

    def report(self, state: State, out: Outputs, max_cycles: int | None, counts: bool) -> NDArray[Any]:
        """A new array (B, a) AGENT about the battles of an engine, see `report_agents`."""
        if self._bound[0] is not state or self._bound[1] is not out:
            reports = self._reports.view(AGENT)[..., 0]
            write = report_agents.bind(state, out, self._rows, self.episodes, reports, self.done, self._counts)
            self._bound = state, out, write
        self._bound[2](NO_LIMIT if max_cycles is None else max_cycles, counts)
        self.ends, self.over = self._counts.tolist()
        return np.ndarray(self.episodes.shape, AGENT, self._reports.copy())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bound": (None, None, None)}  # a copy binds its own arrays


@kernel
def _add_statistics(agent: Row, counted: Row) -> None:
    """Add a mech's statistics, in the order of STATISTIC_NAMES."""
    agent.statistics[2] += counted.damage
    agent.statistics[3] += counted.friendly_damage
    agent.statistics[4] += counted.damage_taken
    agent.statistics[5] += counted.kills
    agent.statistics[6] += counted.assists
    agent.statistics[7] += counted.paints
    agent.statistics[8] += counted.interceptions
    agent.statistics[9] += counted.falls
    agent.statistics[10] += counted.shutdowns
    agent.statistics[11] += counted.deaths
    agent.statistics[12] += counted.bad_actions


@kernel
def _report_battle(battle: Row, teams: Any, team: int, agent: Row) -> None:
    """The part of a report that is about the battle, as a team sees it."""
    agent.own_share, agent.enemy_share = teams[team].share, teams[1 - team].share
    agent.own_score, agent.enemy_score = teams[team].score, teams[1 - team].score
    agent.map_seed = battle.map_seed
    agent.outcome, agent.reason = 0, 0
    if battle.over:
        agent.reason = battle.reason
        if battle.winner != DRAW:
            agent.outcome = 1 if battle.winner == team else -1


@kernel
def _report_mechs(
    state: State, out: Outputs, rows: Any, b: int, first: int, size: int, zero: float, agent: Row
) -> None:  # fmt: skip
    """Sums and means over an agent's mechs, those in `rows` from `first` on. The components' sums start at `zero`."""
    agent.alive, agent.bad_actions, agent.valid = 0, 0, True
    agent.statistics[:] = 0.0
    agent.components[:] = zero
    for i in range(first, first + size):
        m = integer(rows[b, i])
        agent.alive += state.mechs[b, m].alive
        agent.bad_actions += state.mechs[b, m].bad_actions
        _add_statistics(agent, state.statistics[b, m])
        for k in range(agent.components.shape[0]):
            agent.components[k] += out.components[b, m, k]
    agent.living = agent.alive > 0
    for k in range(agent.components.shape[0]):
        agent.components[k] = agent.components[k] / np.float32(size)
    agent.reward = agent.components[0]
    for k in range(1, agent.components.shape[0]):
        agent.reward += agent.components[k]


@kernel
def _report_episode(battle: Row, episode: Row, agent: Row, max_cycles: int, counts: bool) -> None:
    """Truncate the agent after `max_cycles` decisions, and count the decision if it does."""
    if battle.step_count >= max_cycles and episode.present and not agent.terminated:
        agent.truncated = True
    if counts:
        if episode.present and battle.step_count > 0:  # 0: the battle has just started
            episode.length += 1
        episode.total += agent.reward
        if agent.terminated or agent.truncated:
            episode.present = False
    agent.present = episode.present
    agent.statistics[0], agent.statistics[1] = episode.total, episode.length


@entry_point
def report_agents(
    state: State,
    out: Outputs,
    rows: Any,
    episodes: Any,
    agents: Any,
    done: Any,
    counted: Any,
    max_cycles: int,
    counts: bool,
) -> None:
    """Write the reports about all agents, and follow their episodes.

    `rows` (B, n) int64 are the agents' mechs, `episodes` (B, a) EPISODE, `agents` (B, a) AGENT; n is a multiple of a.
    `done` (B,) bool and `counted` (2,) int64 are written as `Agents` has them. `counts` tells whether a decision has
    been taken since the last report. Battles that started after it have zeros in their outputs, and their agents'
    episodes are as at the start.
    """
    size = rows.shape[1] // agents.shape[1]
    zero = 0.0 if agents.shape[1] == 1 else -0.0  # -0.0 + -0.0 is -0.0: a mech's components keep their signs
    counted[ENDS], counted[OVER] = 0, 0
    for b in range(agents.shape[0]):
        counted[OVER] += state.battles[b].over
        done[b] = True
        for a in range(agents.shape[1]):
            first = integer(rows[b, a * size])
            agent = agents[b, a]
            _report_battle(state.battles[b], state.teams[b], integer(state.mechs[b, first].team), agent)
            _report_mechs(state, out, rows, b, a * size, size, zero, agent)
            agent.terminated, agent.truncated = out.terminated[b, first], out.truncated[b, first]
            _report_episode(state.battles[b], episodes[b, a], agent, max_cycles, counts)
            if agent.terminated or agent.truncated:
                counted[ENDS] += 1
            if agent.present:
                done[b] = False
