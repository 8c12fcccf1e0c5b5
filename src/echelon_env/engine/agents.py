"""What environments report about their agents after a decision. An agent is one mech, or all mechs of a learner.

One kernel writes everything into one record array, so that no environment class computes sums and flags with NumPy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.engine.kernels import Row, entry_point, integer, kernel
from echelon_env.engine.state import DRAW, STATISTIC_NAMES, Outputs, State, record_dtype

EPISODE_STATISTICS = ("r", "l", *STATISTIC_NAMES)
"""Names of the entries of the field `statistics` of AGENT: the return, the decisions, the statistics of the battle."""

RETURN, LENGTH, FIRST_COUNTER = integer(0), integer(1), integer(2)
"""Places in EPISODE_STATISTICS."""

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
        ("reason", "i1"),  # an index into REASONS once the battle is over, else 0
        ("present", "?"),  # whether the agent's episode goes on after this decision
        ("living", "?"),  # whether a mech is alive
        ("valid", "?"),  # True; environments change it for battles that an info does not cover
    ]
)
"""The report about an agent."""

ENDS, OVER = integer(0), integer(1)
"""What `report_agents` counts: agents whose episodes end in this decision, and battles that are over."""


class Players(NamedTuple):
    """The agents of B battles, `a` in each, and what is reported about them. All have n / a of n mechs."""

    counters: NDArray[Any]
    """(B, M) COUNTERS: the memory of the state's statistics."""
    rows: NDArray[np.int64]
    """(B, n) their mechs, those of the first agent first."""
    episodes: NDArray[Any]
    """(B, a) EPISODE"""
    agents: NDArray[Any]
    """(B, a) AGENT"""


class Results(NamedTuple):
    """What environments return about the agents of B battles, `a` in each, besides the report."""

    rewards: NDArray[np.float32]
    """(B, a): the sums of the reward's components, in order."""
    terminated: NDArray[np.bool_]
    """(B, a)"""
    truncated: NDArray[np.bool_]
    """(B, a), never together with `terminated`."""
    done: NDArray[np.bool_]
    """(B,): battles without an agent whose episode goes on."""


def allocate_results(battles: int, agents: int) -> Results:
    """Zeros for the results of so many agents in each battle."""
    rewards, terminated = np.zeros((battles, agents), np.float32), np.zeros((battles, agents), np.bool_)
    return Results(rewards, terminated, terminated.copy(), np.zeros(battles, np.bool_))


@kernel
def _add_statistics(agent: Row, counted: Row) -> None:
    """Add a mech's COUNTERS, in the order of STATISTIC_NAMES."""
    amounts = counted.amounts.shape[0]
    for k in range(amounts):
        agent.statistics[FIRST_COUNTER + k] += counted.amounts[k]
    for k in range(counted.counts.shape[0]):
        agent.statistics[FIRST_COUNTER + amounts + k] += counted.counts[k]


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
    state: State, out: Outputs, counters: Any, rows: Any, b: int, first: int, size: int, agent: Row
) -> None:
    """Sums and means over an agent's mechs, those in `rows` from `first` on."""
    m = integer(rows[b, first])
    agent.valid = True
    agent.alive, agent.bad_actions = state.mechs[b, m].alive, state.mechs[b, m].bad_actions
    for k in range(agent.statistics.shape[0]):
        agent.statistics[k] = 0.0
    _add_statistics(agent, counters[b, m])
    for k in range(agent.components.shape[0]):
        agent.components[k] = out.components[b, m, k]
    for i in range(first + 1, first + size):
        m = integer(rows[b, i])
        agent.alive += state.mechs[b, m].alive
        agent.bad_actions += state.mechs[b, m].bad_actions
        _add_statistics(agent, counters[b, m])
        for k in range(agent.components.shape[0]):
            agent.components[k] += out.components[b, m, k]
    agent.living = agent.alive > 0
    if size > 1:
        for k in range(agent.components.shape[0]):
            agent.components[k] = agent.components[k] / np.float32(size)


@kernel
def _reward_of(agent: Row) -> Any:
    """The sum of the reward's components, in order."""
    reward = agent.components[0]
    for k in range(1, agent.components.shape[0]):
        reward += agent.components[k]
    return reward


@kernel
def _report_episode(
    battle: Row, episode: Row, agent: Row, results: Results, b: int, a: int, max_cycles: int, counts: bool
) -> Any:  # fmt: skip
    """Follow the episode of agent `a` of battle `b`: its beginning, the decision if `counts`, and its end.

    It begins with the battle, also where the report before the first decision is missing. It is truncated after
    `max_cycles` decisions. Returns 1 if it ends in this decision, else 0.
    """
    if battle.step_count == 0 or (counts and battle.step_count == 1):
        episode.total, episode.length, episode.present = 0.0, 0, True
    if battle.step_count >= max_cycles and episode.present and not results.terminated[b, a]:
        results.truncated[b, a] = True
    ends = results.terminated[b, a] or results.truncated[b, a]
    if counts:
        if episode.present and battle.step_count > 0:
            episode.length += 1
        episode.total += results.rewards[b, a]
        if ends:
            episode.present = False
    agent.present = episode.present
    if agent.present:
        results.done[b] = False
    agent.statistics[RETURN], agent.statistics[LENGTH] = episode.total, episode.length
    return integer(ends)


@kernel
def report_battle(
    state: State, out: Outputs, players: Players, results: Results, max_cycles: int, counts: bool, b: int
) -> Any:  # fmt: skip
    """Write the reports about a battle's agents, see `report_agents`. Returns the episodes that end."""
    rows, agents = players.rows, players.agents
    size = rows.shape[1] // agents.shape[1]
    ends = integer(0)
    results.done[b] = True
    for a in range(agents.shape[1]):
        first = integer(rows[b, a * size])
        agent = agents[b, a]
        _report_battle(state.battles[b], state.teams[b], integer(state.mechs[b, first].team), agent)
        _report_mechs(state, out, players.counters, rows, b, a * size, size, agent)
        results.rewards[b, a] = _reward_of(agent)
        results.terminated[b, a], results.truncated[b, a] = out.terminated[b, first], out.truncated[b, first]
        ends += _report_episode(state.battles[b], players.episodes[b, a], agent, results, b, a, max_cycles, counts)
    return ends


@entry_point
def report_agents(
    state: State, out: Outputs, players: Players, results: Results, found: Any, max_cycles: int, counts: bool
) -> None:  # fmt: skip
    """Write the reports about all agents, and follow their episodes.

    `found` (2,) int64 are the numbers of ENDS and OVER. `counts` tells whether a decision has been taken since the last
    report, in battles that have not just started.
    """
    found[ENDS], found[OVER] = 0, 0
    for b in range(players.agents.shape[0]):
        found[OVER] += state.battles[b].over
        found[ENDS] += report_battle(state, out, players, results, max_cycles, counts, b)
