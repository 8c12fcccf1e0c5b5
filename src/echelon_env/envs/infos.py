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
| ``outcome`` | 1 for a win, 0 for a draw, -1 for a loss, also if the battle is truncated; 0 until it is over |
| ``reason`` | ``"zone_control"``, ``"elimination"`` or ``"time_limit"``; empty until the battle is over |
| ``action_mask`` | only with choices: for each part of the action an int8 array, 1 for possible choices |
| ``events`` | only with ``events=True``: all `Event` of the last decision in the battle, seen by the agent or not |
| ``present`` | only in `BattleBatchEnv`: whether the mech is still an agent of its battle after the call |

``metadata["reward_components"]`` and ``metadata["episode_statistics"]`` of the environment name the entries of the
vectors. The statistics are ``r``, the return, ``l``, the decisions, and the fields of STATISTICS. The key ``episode``
is not used, because `gymnasium.wrappers.RecordEpisodeStatistics` reserves it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS, BattleConfig
from echelon_env.engine.agents import EPISODE_STATISTICS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import EVENT_KINDS, NO_MECH, REASONS, STATISTIC_NAMES
from echelon_env.spaces.agent import pick

__all__ = [
    "EPISODE_STATISTICS",
    "INFO_NAMES",
    "STATISTIC_NAMES",
    "Event",
    "Report",
    "agent_infos",
    "agent_names",
    "batch_infos",
    "objects",
    "read_events",
]

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
    """Data for the infos of B battles with `a` agents each. Its arrays are new."""

    agents: NDArray[Any]  # (B, a) AGENT; `valid` in the battles that the report covers
    masks: Any  # arrays (B, [a,] choices) int8, see `split_mask`; None for actions without masks
    events: tuple[tuple[Event, ...], ...] | None  # for each battle; None if not requested
    in_progress: bool  # whether it covers all battles, and none of them is over

    def of(self, battles: NDArray[np.bool_]) -> Report:
        """The same report, which from now on covers some battles (B,) only."""
        self.agents["valid"][~battles], self.agents["outcome"][~battles] = False, 0
        return self._replace(in_progress=False)


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


_ZONE = "own_share", "enemy_share", "own_score", "enemy_score"
_SCALARS = ["alive", "living", "bad_actions", *_ZONE, "outcome"]
"""Fields of AGENT that become Python's numbers: to convert each one takes five times as long."""


def agent_infos(report: Report, agents: Collection[int], single_agent: bool = False) -> list[dict[str, Any]]:
    """Infos of the given agents of battle 0; `single_agent` as in `batch_infos`."""
    records = report.agents[0]
    components, statistics = list(records["components"]), list(records["statistics"])  # faster than an index for each
    scalars = records[_SCALARS].tolist()
    map_seed = records["map_seed"][0]  # uint64: Gymnasium's vector environments overflow on ints
    code = records["reason"][0]
    reason = REASONS[code] if code else ""
    infos: list[dict[str, Any]] = []
    for agent in agents:
        alive, living, bad_actions, own_share, enemy_share, own_score, enemy_score, outcome = scalars[agent]
        infos.append(
            {
                "alive": alive if single_agent else living,
                "bad_actions": bad_actions,
                "reward_components": components[agent],
                "own_share": own_share,
                "enemy_share": enemy_share,
                "own_score": own_score,
                "enemy_score": enemy_score,
                "episode_statistics": statistics[agent],
                "map_seed": map_seed,
                "outcome": outcome,
                "reason": reason,
            }
        )
    if report.masks is not None:
        for agent, info in zip(agents, infos, strict=True):
            info["action_mask"] = pick(report.masks, 0 if single_agent else (0, agent))
    if report.events is not None:
        for info in infos:
            info["events"] = report.events[0]
    return infos


def batch_infos(report: Report, single_agent: bool) -> dict[str, Any]:
    """Infos of all battles as arrays, each with a mask ``_key`` of the valid entries.

    With a single agent in a battle, arrays are (B,) and action masks are B tuples. Otherwise arrays are (B, a), action
    masks are a tuple of arrays (B, a, choices), and there is ``present``. ``reward_components`` and
    ``episode_statistics`` have a last axis. ``map_seed`` is (B,). ``reason`` and ``events`` are object arrays (B,).
    """
    agents, masks, battles = report.agents, report.masks, report.agents[:, 0]
    valid, count = battles["valid"], len(battles)
    if single_agent:
        agents = battles
        masks = objects([pick(masks, b) for b in range(count)]) if isinstance(masks, tuple) else masks
    where = agents["valid"]
    infos: dict[str, Any] = {}
    for name, mask_name, field in _OF_ONE_AGENT if single_agent else _OF_AGENTS:
        infos[name], infos[mask_name] = agents[field], where
    if single_agent:
        infos["bad_actions"] = infos["bad_actions"].astype(np.int64)  # as Gymnasium's vector environments have it
    if masks is not None:
        infos["action_mask"], infos["_action_mask"] = masks, where
    infos["map_seed"], infos["_map_seed"] = battles["map_seed"], valid
    reasons = _no_reasons(count).copy()
    if not report.in_progress:
        codes = zip(battles["reason"].tolist(), valid.tolist(), strict=True)
        reasons[:] = [(REASONS[code] if code else "") if known else None for code, known in codes]
    infos["reason"], infos["_reason"] = reasons, valid
    if report.events is not None:
        infos["events"], infos["_events"] = objects(report.events), valid
    return infos


_OF_AGENTS = tuple(
    (name, f"_{name}", field)
    for name, field in {
        "alive": "living", "bad_actions": "bad_actions", "reward_components": "components",
        **dict(zip(_ZONE, _ZONE, strict=True)),
        "present": "present", "episode_statistics": "statistics", "outcome": "outcome",
    }.items()
)  # fmt: skip
"""Keys of the infos of several agents in a battle, those of their masks, and the fields of AGENT."""

_OF_ONE_AGENT = tuple(
    (name, mask, "alive" if name == "alive" else field) for name, mask, field in _OF_AGENTS if name != "present"
)


@functools.cache
def _no_reasons(count: int) -> NDArray[Any]:
    return np.full(count, "", object)  # a copy takes a tenth of the time


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An object array (B,) of the values. `np.array` would turn tuples into further axes."""
    array = np.full(len(values), None, object)
    for index, value in enumerate(values):
        array[index] = value
    return array
