"""Sequences of battles for all environment classes: seeds, ends of episodes and autoreset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from echelon_env.config.schema import ConfigError, check_integer, check_seed, nearest_name
from echelon_env.engine.agents import AGENT, EPISODE, Players, allocate_results, report_agents
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.maps import map_seed
from echelon_env.engine.rng import episode_seed
from echelon_env.engine.state import COUNTERS
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.envs.infos import Report, agent_names, batch_infos, objects, read_events
from echelon_env.spaces.agent import AgentSpaces, pick
from echelon_env.spaces.masks import action_masks, split_mask

NO_LIMIT = 2**62
"""Decisions that no battle reaches."""

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Agents:
    """The agents of B battles, `count` (a) in each, and the course of their episodes.

    `rows` (B, n) int64 are the agents' mechs, those of the first agent first. All agents have n / a of them.
    """

    def __init__(self, engine: BattleEngine, rows: NDArray[np.int64], count: int) -> None:
        self._engine, self._rows = engine, rows
        self.episodes = np.zeros((len(rows), count), EPISODE)
        """(B, a) EPISODE."""
        self.results = allocate_results(len(rows), count)
        """Those of the last report, which the next one overwrites."""
        self._found = np.zeros(2, np.int64)
        self.ends = self.over = 0
        """Agents whose episodes ended in the decision of the last report, and battles that were over."""
        self._bind()

    def report(self, max_cycles: int | None, counts: bool) -> NDArray[Any]:
        """A new array (B, a) AGENT about the battles, see `report_agents`."""
        self._write(NO_LIMIT if max_cycles is None else max_cycles, counts)
        self.ends, self.over = self._found.tolist()
        return np.ndarray(self.episodes.shape, AGENT, self._bytes.copy())  # faster than a copy of records

    def _bind(self) -> None:
        reports, state, out = np.zeros(self.episodes.shape, AGENT), self._engine.state, self._engine.out
        self._bytes = reports.view(np.uint8)
        players = Players(state.statistics.view(COUNTERS), self._rows, self.episodes, reports)
        self._write = report_agents.bind(state, out, players, self.results, self._found).call

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bytes": None, "_write": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._bind()


class FinalStep(NamedTuple):
    """The final observations and report of battles that were reset in the same step."""

    observations: Floats  # (B, [a,] [n,] D), see `Step`
    done: Flags  # (B,) those battles
    report: Report


class Step(NamedTuple):
    """The result of a decision in B battles with `a` agents of n mechs each."""

    observations: Floats  # (B, M, D) of all mechs, (B, D) of pilots, (B, n, D) of teams
    rewards: Floats  # (B, a)
    terminated: Flags  # (B, a)
    truncated: Flags  # (B, a), never together with `terminated`
    report: Report
    final: FinalStep | None  # None if no battle was reset in this step


class AutoresetBattles:
    """B sub-environments, each of which plays a sequence of controlled battles.

    With control ``"all"`` every mech is an agent (a = n). Otherwise the learner's mechs of a battle are one agent
    (a = 1): its reward components are the means over its mechs, and its reward is the components' sum in float32. A
    sub-environment is done when it has no agent left: the battle is over, `max_cycles` is reached, or the last agent
    has died.

    The modes are those of `BattleVectorEnv`, the other arguments those of `envs.options`. By default agents have
    vectors; reports hold action masks if the actions have them. Raises `ConfigError` for an unknown mode, and for
    numbers that are not integers of at least 1.
    """

    def __init__(
        self,
        battles: ControlledBattles,
        autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
        *,
        max_cycles: int | None = None,
        regenerate: int = 1,
        spaces: AgentSpaces | None = None,
        events: bool = False,
    ) -> None:
        self.battles = battles
        self.engine = battles.engine
        self.mode = check_autoreset_mode(autoreset_mode)
        self.max_cycles = check_max_cycles(max_cycles)
        config = battles.config
        self.names = agent_names(config)
        self.mech_classes = [
            config.mech_classes[config.catalog.class_index(name)] for roster in config.rosters for name in roster
        ]
        self._regenerate = check_integer("regenerate", regenerate)
        self._spaces, self._has_events = spaces or AgentSpaces(), events
        self._masked = self._spaces.masked
        self._single_agent = battles.control != "all"
        count, agents = battles.num_battles, 1 if self._single_agent else battles.num_controlled
        self._seeds: list[int] | None = None
        self._episodes = np.zeros(count, np.int64)
        self._agents = Agents(self.engine, battles.rows, agents)
        self._shown = np.s_[:, 0] if battles.control == "pilot" else np.s_[:]
        self._done = np.ones(count, np.bool_)
        self._any_done = True

    @property
    def was_reset(self) -> bool:
        """Whether `reset` has been called."""
        return self._seeds is not None

    def reset(
        self, seed: Any, generator: np.random.Generator, options: dict[str, Any] | None = None
    ) -> tuple[Floats, Report]:
        """Start battles: in all sub-environments, or in those of ``options["reset_mask"]`` (B,) bool.

        `seed` and `options` are those of `BattleVectorEnv.reset`. The generator draws initial seeds for
        sub-environments without one. Later battles have the maps of the seeds again, not those of ``"map_seed"``.

        Returns the observations of all sub-environments, see `Step`, and a report about those that were reset.

        Raises ResetNeeded if the first reset is partial. Raises ValueError for an unknown option, for a mask or seeds
        of a wrong shape, or a seed that is not an integer in [0, 2**64), with nothing changed.
        """
        chosen = read_reset(seed, options, generator, self._seeds, self._episodes)
        mask = chosen.mask
        self._start(chosen, restart=chosen.given)
        report = self._report(counts=False)
        return self.battles.observations[self._shown], report if mask.all() else report.of(mask)

    def step(self, actions: Floats) -> Step:
        """Take a decision in every battle, with the mechs' actions (B, n, A).

        Raises ResetNeeded before the first reset and, without autoreset, while a sub-environment is done.
        """
        if self._any_done and (not self.was_reset or self.mode == AutoresetMode.DISABLED):
            raise ResetNeeded(
                f"no battle in progress in sub-environments {np.flatnonzero(self._done).tolist()}: call reset() first"
            )
        self.battles.advance(actions)
        if self._any_done:
            self._start_next()
        report = self._report(counts=True)
        results = self._agents.results
        rewards, terminated, truncated = results.rewards.copy(), results.terminated.copy(), results.truncated.copy()
        if self._agents.ends:
            self._done = results.done.copy()
            self._any_done = bool(self._done.any())
        final = None
        if self._any_done and self.mode == AutoresetMode.SAME_STEP:
            final = FinalStep(self.battles.copy_observations()[self._shown], self._done, report.of(self._done))
            self._start_next()
            report = self._report(counts=False)
        return Step(self.battles.observations[self._shown], rewards, terminated, truncated, report, final)

    def resume(self) -> None:
        """Go on with battles of mechs as agents that the engine has restored: their episodes begin.

        Battles that are over are followed by the next ones.
        """
        self._agents.episodes[:] = 0
        self._agents.episodes["present"] = present = remaining(self.engine)
        self._done = np.logical_not(present.any(axis=1))
        self._any_done = bool(self._done.any())

    def global_state(self, team: int) -> Floats:
        """(B, S) float32, see `BattleEngine.global_state`. Raises ResetNeeded before the first reset, ValueError."""
        self.check_reset("state()")
        return self.engine.global_state(team)

    def check_reset(self, what: str) -> None:
        """Raise ResetNeeded before the first reset."""
        if not self.was_reset:
            raise ResetNeeded(f"{what} needs a battle: call reset() first")

    def action_masks(self) -> NDArray[np.int8]:
        """Masks of the agents' actions: (B, a, mechs of an agent * K) int8, see `spaces.action_masks`."""
        masks = self.battles.rows_of(action_masks(self.engine, self._spaces.action))
        return masks.reshape(*self._agents.episodes.shape, -1)

    def close(self) -> None:
        """Stop the threads of the engine and of policies that were given by name."""
        self.battles.close()

    def _start(self, chosen: Reset, restart: Flags | None = None) -> None:
        """Start battles. `restart` (B,) marks sub-environments with a new seed."""
        seeds, maps = battle_seeds(chosen, self._regenerate)
        self.battles.start(seeds, chosen.mask, map_seeds=maps, restart=restart)
        self._seeds, self._episodes = chosen.seeds, chosen.episodes
        self._done = self._done & ~chosen.mask
        self._any_done = bool(self._done.any())

    def _start_next(self) -> None:
        """Start the next battles of the sub-environments that are done."""
        assert self._seeds is not None
        done = self._done
        self._start(Reset(done, done, self._seeds, self._episodes + done, [None] * len(done)))

    def _report(self, counts: bool) -> Report:
        """A report about all battles; with `counts` after a decision, which the agents' episodes count."""
        events = None
        if self._has_events:
            events = tuple(read_events(self.engine, b, self.names) for b in range(self.battles.num_battles))
        agents = self._agents.report(self.max_cycles, counts)
        masks: Any = None
        if self._masked:
            masks = self.action_masks()
            masks = split_mask(masks[:, 0] if self._single_agent else masks, self._spaces.action, self._spaces.mechs)
        return Report(agents, masks, events, self._agents.over == 0)


def remaining(engine: BattleEngine) -> Flags:
    """(B, M): the mechs whose episodes go on if they have not been truncated."""
    stays = engine.alive | (engine.config.dead_agents == "persist")
    return stays & ~engine.battle_over[:, None]


class Reset(NamedTuple):
    """Which of B sub-environments a reset starts, and how."""

    mask: Flags  # (B,) those that start
    given: Flags  # (B,) those of them with a new seed
    seeds: list[int]  # of all sequences of battles
    episodes: NDArray[np.int64]  # (B,) battles since the seeds were given
    map_seeds: Sequence[int | None]  # seeds of the maps, or None where they follow from the seeds


def read_reset(
    seed: Any,
    options: dict[str, Any] | None,
    generator: np.random.Generator,
    last_seeds: list[int] | None,
    episodes: NDArray[np.int64],
) -> Reset:
    """The checked arguments of `AutoresetBattles.reset`, given the last seeds, None before the first reset.

    Raises its errors.
    """
    chosen = check_options(options, ("map_seed", "reset_mask"))
    mask = _check_mask(chosen.get("reset_mask"), len(episodes))
    map_seeds = _read_seeds(chosen.get("map_seed"), len(mask), step=0, name="map_seed")
    first = last_seeds is None
    if first and not mask.all():
        raise ResetNeeded("reset_mask: the first reset must start every battle")
    given_seeds = _read_seeds(seed, len(mask))
    given = mask & np.array([value is not None for value in given_seeds])
    old = last_seeds or (given_seeds if given.all() else generator.integers(2**63, size=len(mask)).tolist())
    seeds = [last if value is None or not m else value for value, m, last in zip(given_seeds, mask, old, strict=True)]
    return Reset(mask, given, seeds, np.where(given | first, 0, episodes + mask), map_seeds)


def battle_seeds(chosen: Reset, regenerate: int) -> tuple[list[int], list[int]]:
    """The seeds of the battles that start, and of their maps; 0 elsewhere."""
    seeds, maps = [0] * len(chosen.seeds), [0] * len(chosen.seeds)
    for b in chosen.mask.nonzero()[0].tolist():
        episode, given = int(chosen.episodes[b]), chosen.map_seeds[b]
        seeds[b] = episode_seed(chosen.seeds[b], episode)
        maps[b] = map_seed(chosen.seeds[b], episode, regenerate) if given is None else given
    return seeds, maps


def final_infos(observations: Any, final: FinalStep, single_agent: bool) -> dict[str, Any]:
    """The infos ``final_obs`` and ``final_info`` of Gymnasium's vector environments with `SAME_STEP` autoreset.

    ``final_obs`` is an object array (B,) of the battles' last observations. Every array of `observations` has a leading
    axis B. ``final_info`` is a dict from `infos.batch_infos`.
    """
    done = final.done
    last = [pick(observations, b) if ended else None for b, ended in enumerate(done.tolist())]
    return {
        "final_obs": objects(last), "_final_obs": done,
        "final_info": batch_infos(final.report, single_agent), "_final_info": done,
    }  # fmt: skip


def check_max_cycles(max_cycles: int | None) -> int | None:
    """The argument as an int or None. Raises `ConfigError` if it is neither None nor an integer of at least 1."""
    return None if max_cycles is None else check_integer("max_cycles", max_cycles)


def check_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """The mode. Raises `ConfigError` for an unknown one."""
    by_name = {m.name: m for m in AutoresetMode} | {m.value: m for m in AutoresetMode}
    if isinstance(mode, AutoresetMode):
        return mode
    if mode not in by_name:
        raise ConfigError(f"unknown autoreset_mode {mode!r}{nearest_name(str(mode), [m.name for m in AutoresetMode])}")
    return by_name[mode]


def check_battle_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of a reset of one battle, with ``"map_seed"`` only. Raises ValueError."""
    given = {key: each for key, each in (options or {}).items() if key != "options"}  # PettingZoo's tests pass it
    checked = dict(check_options(given, ("map_seed",)))
    if checked.get("map_seed") is not None:
        checked["map_seed"] = check_seed(checked["map_seed"], "map_seed")
    return checked


def check_options(options: Mapping[str, Any] | None, allowed: Sequence[str]) -> Mapping[str, Any]:
    """The options of a reset. Raises ValueError for an unknown one, with the nearest valid name."""
    for name in options or {}:
        if name not in allowed:
            raise ValueError(f"options: unknown key {name!r}{nearest_name(str(name), allowed)}")
    return options or {}


def _check_mask(mask: Any, count: int) -> Flags:
    if mask is None:
        return np.ones(count, np.bool_)
    array = np.array(mask)
    if array.shape != (count,) or array.dtype != np.bool_ or not array.any():
        raise ValueError(f"reset_mask: expected ({count},) booleans, at least one true, got {mask!r}")
    return array


def _read_seeds(seed: Any, count: int, step: int = 1, name: str = "seed") -> Sequence[int | None]:
    """One seed for each sub-environment, or None where none is given. Those from an integer differ by `step`."""
    if seed is None:
        return [None] * count
    if isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str):
        seeds = [None if one is None else check_seed(one, name) for one in seed]
        if len(seeds) != count:
            raise ValueError(f"{name}: expected {count} seeds, got {len(seeds)}")
        return seeds
    first = check_seed(seed, name)
    return [check_seed(first + step * index, name) for index in range(count)]
