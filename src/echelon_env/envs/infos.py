"""Contents of the infos of all environment classes: scalars and vectors for single agents, arrays for batches.

Every call returns the same keys, with the same types and shapes.

| key | meaning |
|---|---|
| ``alive`` | whether the mech is alive; for a team or pilot as one agent: its number of living mechs |
| ``bad_actions`` | number of non-finite entries in the last action, which count as 0 |
| ``reward_components`` | (K,) float32, named in the metadata; the float32 sum in this order is exactly the reward |
| ``own_share``, ``enemy_share`` | the teams' shares of the zone in the last decision, 0..1 |
| ``own_score``, ``enemy_score`` | the teams' seconds of zone control |
| ``episode_statistics`` | (S,) float64 of the episode so far, named in the metadata, see below |
| ``map_seed`` | seed of the map |
| ``outcome`` | 1 for a win, 0 for a draw, -1 for a loss; 0 until the battle is over |
| ``reason`` | ``"zone_control"``, ``"elimination"`` or ``"time_limit"``; empty until the battle is over |
| ``action_mask`` | only with choices: for each part of the action an int8 array, 1 for possible choices |
| ``events`` | only with ``events=True``: all `Event` of the last decision in the battle, seen by the agent or not |
| ``present`` | only in `BattleBatchEnv`: whether the mech is still an agent of its battle after the call |

``metadata["reward_components"]`` and ``metadata["episode_statistics"]`` of the environment name the entries of the
vectors. The statistics are ``r``, the return, ``l``, the decisions, and the fields of STATISTICS. The key ``episode``
is not used, because `gymnasium.wrappers.RecordEpisodeStatistics` reserves it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS, BattleConfig
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import DRAW, EVENT_KINDS, NO_MECH, REASONS, STATISTICS
from echelon_env.spaces.agent import pick

STATISTIC_NAMES = tuple(name for name in STATISTICS.names or () if not name.startswith("gap_"))
"""Statistics of a mech's battle: the fields of STATISTICS without its padding."""

EPISODE_STATISTICS = ("r", "l", *STATISTIC_NAMES)
"""Names of the entries of ``episode_statistics``."""

INFO_NAMES = {"reward_components": REWARD_COMPONENTS, "episode_statistics": EPISODE_STATISTICS}
"""The part of the environments' metadata that names the entries of vectors in infos."""


class Event(NamedTuple):
    """An event of a battle. `echelon_env.engine.EVENT_MEANINGS` defines the fields for each kind."""

    kind: str
    tick: int
    actor: str | None
    """Name of a mech."""
    target: str | None
    """Name of a mech."""
    weapon: str | None
    """Name of a weapon of the catalogue."""
    amount: float
    position: tuple[float, float, float]
    """m, position of the event; for a shot the position of the muzzle."""
    direction: tuple[float, float]
    """Direction of travel of a hit or a splash, a horizontal unit vector."""


class Report(NamedTuple):
    """Data for the infos of B battles with `a` agents of n mechs each. Valid until the environment's next call."""

    valid: NDArray[np.bool_]  # (B,) battles that the report covers
    present: NDArray[np.bool_]  # (B, a) agents that continue
    alive: NDArray[Any]  # (B, a) bool, or the number of the agent's living mechs
    bad_actions: NDArray[np.int32]  # (B, a)
    components: NDArray[np.float32]  # (B, a, K)
    agent_teams: NDArray[np.int64]  # (B, a)
    teams: NDArray[Any]  # (B, 2) TEAM
    battles: NDArray[Any]  # (B,) BATTLE
    statistics: NDArray[np.float64]  # (B, a, S), see EPISODE_STATISTICS
    masks: Any  # arrays (B, a, choices) int8, see AgentSpaces.split_masks; None for actions without masks
    events: tuple[tuple[Event, ...], ...] | None  # for each battle; None if not requested

    def copied(self) -> Report:
        """A copy that stays valid after the next call."""
        return self._replace(teams=self.teams.copy(), battles=self.battles.copy())


_FLOATS = sum(STATISTICS[name].kind == "f" for name in STATISTIC_NAMES)
_GROUPED = np.dtype(
    {
        "names": ["floats", "integers"],
        "formats": [("f8", _FLOATS), ("i4", len(STATISTIC_NAMES) - _FLOATS)],
        "offsets": [0, 8 * _FLOATS],
        "itemsize": STATISTICS.itemsize,
    }
)
"""STATISTICS, whose floats come first, with two fields: to convert each one takes five times as long."""


def numbers_of(records: NDArray[Any]) -> NDArray[np.float64]:
    """Records (...) STATISTICS as an array (..., S), with zeros for the return and the number of decisions."""
    grouped = np.ascontiguousarray(records).view(_GROUPED)
    statistics = np.zeros((*records.shape, len(EPISODE_STATISTICS)))
    statistics[..., 2 : 2 + _FLOATS], statistics[..., 2 + _FLOATS :] = grouped["floats"], grouped["integers"]
    return statistics


def agent_names(config: BattleConfig) -> list[str]:
    """Names of a battle's mechs in the order of the engine's rows: ``blue_0`` ... ``red_n``."""
    return [
        f"{team}_{i}" for team, roster in zip(("blue", "red"), config.rosters, strict=True) for i in range(len(roster))
    ]


def read_events(engine: BattleEngine, battle: int, names: Sequence[str]) -> tuple[Event, ...]:
    """The events of a battle's last decision, in order. `names` are the mechs' names in the order of the rows."""
    weapons = [weapon.name for weapon in engine.config.catalog.weapons]
    return tuple(
        Event(
            kind=EVENT_KINDS[event["kind"]],
            tick=int(event["tick"]),
            actor=None if event["actor"] == NO_MECH else names[event["actor"]],
            target=None if event["target"] == NO_MECH else names[event["target"]],
            weapon=None if event["weapon"] < 0 else weapons[event["weapon"]],
            amount=float(event["amount"]),
            position=(float(event["x"]), float(event["y"]), float(event["z"])),
            direction=(float(event["dx"]), float(event["dy"])),
        )
        for event in engine.events(battle)
    )


def agent_infos(report: Report, agents: Collection[int]) -> list[dict[str, Any]]:
    """Infos of the given agents of battle 0."""
    alive, bad_actions, agent_teams = (
        report.alive[0].tolist(),
        report.bad_actions[0].tolist(),
        report.agent_teams[0].tolist(),
    )
    components, statistics, zones = report.components[0].copy(), report.statistics[0], _zones(report)
    map_seed = report.battles["map_seed"][0]  # uint64: Gymnasium's vector environments overflow on ints
    over = report.battles["over"][0]
    outcomes = _outcomes(report)[0].tolist() if over else [0] * len(alive)
    reason = REASONS[report.battles["reason"][0]] if over else ""
    infos: list[dict[str, Any]] = []
    for agent in agents:
        own_share, enemy_share, own_score, enemy_score = zones[agent_teams[agent]]
        infos.append(
            {
                "alive": alive[agent],
                "bad_actions": bad_actions[agent],
                "reward_components": components[agent],
                "own_share": own_share,
                "enemy_share": enemy_share,
                "own_score": own_score,
                "enemy_score": enemy_score,
                "episode_statistics": statistics[agent],
                "map_seed": map_seed,
                "outcome": outcomes[agent],
                "reason": reason,
            }
        )
    if report.masks is not None:
        for agent, info in zip(agents, infos, strict=True):
            info["action_mask"] = pick(report.masks, (0, agent))
    if report.events is not None:
        for info in infos:
            info["events"] = report.events[0]
    return infos


def _zones(report: Report) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(own share, enemy share, own score, enemy score) for blue and for red in battle 0."""
    (blue_share, red_share), (blue_score, red_score) = (
        report.teams["share"][0].tolist(),
        report.teams["score"][0].tolist(),
    )
    return (blue_share, red_share, blue_score, red_score), (red_share, blue_share, red_score, blue_score)


def batch_infos(report: Report, single_agent: bool) -> dict[str, Any]:
    """Infos of all battles as arrays, each with a mask ``_key`` of the valid entries.

    Parameters
    ----------
    report
        The report about B battles with `a` agents each.
    single_agent
        Whether a battle has one agent. If so, arrays are (B,) and action masks are B tuples. Otherwise arrays are
        (B, a) and action masks are a tuple of arrays (B, a, choices).

    Returns
    -------
    dict
        The keys of the table in this module. ``present`` (agents that continue) is included for several agents only.
        ``reward_components`` and ``episode_statistics`` have a last axis. ``map_seed`` is (B,). ``reason`` and
        ``events`` are object arrays (B,).
    """

    def of_agents(array: NDArray[Any]) -> NDArray[Any]:
        return array[:, 0] if single_agent else array

    valid = of_agents(np.repeat(report.valid[:, None], report.alive.shape[1], axis=1))
    infos: dict[str, Any] = {}

    def put(name: str, value: Any, where: NDArray[np.bool_]) -> None:
        infos[name], infos[f"_{name}"] = value, where

    put("alive", of_agents(report.alive), valid)
    put("bad_actions", of_agents(report.bad_actions), valid)
    put("reward_components", of_agents(report.components).copy(), valid)
    battle = np.arange(len(report.valid))[:, None]
    for name, team in (("own", report.agent_teams), ("enemy", 1 - report.agent_teams)):
        put(f"{name}_share", of_agents(report.teams["share"][battle, team]), valid)
        put(f"{name}_score", of_agents(report.teams["score"][battle, team]), valid)
    if not single_agent:
        put("present", report.present.copy(), valid)
    if report.masks is not None:
        masks = pick(report.masks, np.s_[:, 0]) if single_agent else report.masks
        if single_agent and isinstance(masks, tuple):
            masks = objects([pick(masks, b) for b in range(len(report.valid))])
        put("action_mask", masks, valid)
    if report.events is not None:
        put("events", objects(report.events), report.valid.copy())
    over = (report.battles["over"] != 0) & report.valid
    reasons = [REASONS[reason] if o else "" for reason, o in zip(report.battles["reason"], over.tolist(), strict=True)]
    put("episode_statistics", of_agents(report.statistics), valid)
    put("map_seed", report.battles["map_seed"].copy(), report.valid.copy())
    put("outcome", of_agents(_outcomes(report) * over[:, None]), valid)
    put(
        "reason",
        objects([text if v else None for text, v in zip(reasons, report.valid.tolist(), strict=True)]),
        report.valid.copy(),
    )
    return infos


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An object array (B,) of the values. `np.array` would turn tuples into further axes."""
    array = np.full(len(values), None, object)
    for index, value in enumerate(values):
        array[index] = value
    return array


def _outcomes(report: Report) -> NDArray[np.int64]:
    """(B, a): 1 for a win, 0 for a draw, -1 for a loss of the agents' teams."""
    winners = report.battles["winner"][:, None]
    return np.where(winners == DRAW, 0, np.where(winners == report.agent_teams, 1, -1))
