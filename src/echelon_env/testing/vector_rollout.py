"""Rollouts of vector environments in any autoreset mode, and the trajectory of each sub-environment."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from echelon_env.testing.comparison import find_difference, snapshot
from echelon_env.testing.conformance import ConformanceError, brief, demand_none, raising, with_type
from echelon_env.testing.membership import find_mismatch
from echelon_env.testing.sampling import ActionSampler

Seed = int | list[int | None] | None
Trajectory = list[dict[str, Any]]
"""The trajectory of a sub-environment, equal in all modes: dicts with ``observation`` and ``info`` at the start of an
episode, after a step also with ``reward``, ``terminated`` and ``truncated``."""


class Results(NamedTuple):
    """The result of `step`, or of `reset` with None as rewards and flags."""

    observations: Any
    rewards: Any
    terminations: Any
    truncations: Any
    infos: dict[str, Any]


class Plan:
    """The actions of every sub-environment, one for each of its steps, chosen when first needed."""

    def __init__(self, space: Any, num_envs: int, seed: int, choose: ActionSampler) -> None:
        self._choose = choose
        self._spaces = [copy.deepcopy(space) for _ in range(num_envs)]
        for i, own in enumerate(self._spaces):
            own.seed(seed + i)
        self.rows: list[list[Any]] = [[] for _ in range(num_envs)]

    def action(self, index: int, entry: dict[str, Any], taken: int) -> Any:
        """The action of a sub-environment after `taken` steps. `entry` is the last entry of its trajectory."""
        row = self.rows[index]
        if taken == len(row):
            try:
                row.append(self._choose(index, self._spaces[index], entry["observation"], entry["info"]))
            except ConformanceError as error:
                raise error.within(f"action {taken} of sub-environment {index}") from error
        return copy.deepcopy(row[taken])

    def reversed(self) -> Plan:
        """The plan for the sub-environments in reversed order."""
        twin = copy.copy(self)
        twin._spaces, twin.rows = self._spaces[::-1], self.rows[::-1]
        return twin

    def with_other_actions(self, index: int) -> Plan:
        """The plan with new actions for one sub-environment."""
        twin = copy.copy(self)
        twin.rows = [[] if i == index else row for i, row in enumerate(self.rows)]
        return twin


class VectorRollout:
    """A rollout of a vector environment. It records the trajectories of the sub-environments."""

    def __init__(self, env: Any, mode: AutoresetMode, plan: Plan, ignored: Collection[str]) -> None:
        self.env, self.mode, self.plan, self._ignored = env, mode, plan, ignored
        self.trajectories: list[Trajectory] = [[] for _ in range(env.num_envs)]
        self.taken = [0] * env.num_envs
        self.ended = [0] * env.num_envs
        self.done = np.zeros(env.num_envs, np.bool_)
        self._last: list[Any] = []

    def reset(self, where: str, seed: Seed) -> Results:
        """Start every episode."""
        results = self._reset(where, seed, {})
        self._last = self._split(where, results.observations)
        for i in range(self.env.num_envs):
            self._append_first(where, i, results.infos)
        return results

    def reset_some(self, where: str, mask: NDArray[np.bool_], seed: Seed) -> Results:
        """Start the episodes of `mask` (num_envs,) bool by ``options["reset_mask"]``."""
        results = self._reset(where, seed, {"reset_mask": mask.copy()})
        before, self._last = self._last, self._split(where, results.observations)
        for i, chosen in enumerate(mask):
            if chosen:
                self._append_first(where, i, results.infos)
                continue
            changed = find_difference(before[i], self._last[i], path="observation")
            demand_none("reset_mask", f"{where}, sub-environment {i}", changed, "to stay ")
        self.done &= ~mask
        return results

    def step(self, where: str) -> Results:
        """Take a step in every sub-environment. In mode DISABLED those that are done must have been reset."""
        actions = self._actions()
        given = copy.deepcopy(actions)
        with raising("step", where, "the step to be taken"):
            returned = self.env.step(given)
        demand_none("actions_written", where, find_difference(actions, given, path="actions"), "to stay ")
        if not isinstance(returned, tuple) or len(returned) != 5:
            raise ConformanceError("step", where, "a tuple of 5", with_type(returned))
        results = Results(*returned)
        self._check_arrays(where, results)
        restarted = self.done.copy()
        self._last = self._split(where, results.observations)
        self.done = np.logical_or(results.terminations, results.truncations)
        for i in range(self.env.num_envs):
            if restarted[i]:
                self._check_reset_step(where, i, results)
                self._append_first(where, i, results.infos)
            else:
                self._append_step(where, i, results)
        if self.mode == AutoresetMode.SAME_STEP:
            self.done = np.zeros(self.env.num_envs, np.bool_)
        return results

    def advance(self, lengths: Sequence[int]) -> None:
        """Step until every trajectory has at least its given length."""
        while any(len(trajectory) < length for trajectory, length in zip(self.trajectories, lengths, strict=True)):
            if self.mode == AutoresetMode.DISABLED and self.done.any():
                self.reset_some(f"{self.mode.name}, reset by mask", self.done, None)
            self.step(f"{self.mode.name}, step {max(self.taken)}")

    def _reset(self, where: str, seed: Seed, options: dict[str, Any]) -> Results:
        check = "seed_per_env" if isinstance(seed, list) else "reset"
        with raising(check, where, f"reset(seed={seed}, options={options}) to be accepted"):
            returned = self.env.reset(seed=seed, options=options)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ConformanceError("reset", where, "a tuple of 2", with_type(returned))
        return Results(returned[0], None, None, None, returned[1])

    def _actions(self) -> Any:
        # a step that resets ignores its action: repeat the last one
        chosen = [
            self.plan.rows[i][self.taken[i] - 1] if self.done[i] else self.plan.action(i, trajectory[-1], self.taken[i])
            for i, trajectory in enumerate(self.trajectories)
        ]
        space = self.env.single_action_space
        empty: Any = create_empty_array(space, self.env.num_envs, fn=np.zeros)
        return concatenate(space, chosen, empty)

    def _check_arrays(self, where: str, results: Results) -> None:
        shape = (self.env.num_envs,)
        for name in ("rewards", "terminations", "truncations"):
            array, kind = getattr(results, name), "f" if name == "rewards" else "b"
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind != kind:
                wanted = f"an array of shape {shape} of {'floats' if kind == 'f' else 'bools'}"
                described = f"shape {np.shape(array)}, {getattr(array, 'dtype', type(array).__name__)}"
                raise ConformanceError("rewards" if kind == "f" else "flags", f"{where}, {name}", wanted, described)
        if not np.isfinite(results.rewards).all():
            raise ConformanceError("rewards", where, "finite numbers", brief(results.rewards))

    def _check_reset_step(self, where: str, index: int, results: Results) -> None:
        got = [results.rewards[index], results.terminations[index], results.truncations[index]]
        if any(got):
            expected = "reward 0 and no flags in the step after the end"
            described = "reward {}, terminated {}, truncated {}".format(*got)
            raise ConformanceError("next_step", f"{where}, sub-environment {index}", expected, described)

    def _append_first(self, where: str, index: int, infos: dict[str, Any]) -> None:
        info = info_of(infos, index, self.env.num_envs, where)
        self._append(where, index, {"observation": self._last[index], "info": info})

    def _append_step(self, where: str, index: int, results: Results) -> None:
        observation, info = self._last[index], info_of(results.infos, index, self.env.num_envs, where)
        ended = bool(self.done[index])
        if self.mode == AutoresetMode.SAME_STEP:
            info = {key: value for key, value in info.items() if key not in ("final_obs", "final_info")}
            final = _final(where, index, results.infos, ended)
            if ended:
                observation = final["obs"]
                info = info_of(final["info"], index, self.env.num_envs, f"{where}, final_info")
        entry = {
            "observation": observation,
            "reward": results.rewards[index],
            "terminated": results.terminations[index],
            "truncated": results.truncations[index],
            "info": info,
        }
        self._append(where, index, entry)
        self.taken[index] += 1
        self.ended[index] += ended
        if ended and self.mode == AutoresetMode.SAME_STEP:
            rest = {
                key: value for key, value in results.infos.items() if key.lstrip("_") not in ("final_obs", "final_info")
            }
            self._append_first(where, index, rest)

    def _append(self, where: str, index: int, entry: dict[str, Any]) -> None:
        self.trajectories[index].append(copy_entry(f"{where}, sub-environment {index}", entry, self._ignored))

    def _split(self, where: str, observations: Any) -> list[Any]:
        mismatch = find_mismatch(self.env.observation_space, observations, "observations")
        demand_none("observations", where, mismatch)
        return list(iterate(self.env.observation_space, observations))


def copy_entry(where: str, entry: dict[str, Any], ignored: Collection[str]) -> dict[str, Any]:
    """A deep copy of an entry of a trajectory. Values under `ignored` keys of its info are not copied."""
    return {name: snapshot(f"{where}, {name}", part, ignored if name == "info" else ()) for name, part in entry.items()}


def rollout_single(env: Any, seed: int, plan: Plan, index: int, length: int, ignored: Collection[str]) -> Trajectory:
    """The trajectory, with `length` entries, of a single environment that is reset without a seed after every end."""
    names, single = ("observation", "reward", "terminated", "truncated", "info"), f"single environment {index}"
    trajectory: Trajectory = []
    taken = 0
    while True:
        where = f"{single}, reset after {taken} steps"
        with raising("singles", where, "an observation and an info"):
            observation, info = env.reset(seed=None if taken else seed)
        trajectory.append(copy_entry(where, {"observation": observation, "info": info}, ignored))
        ended = False
        while not ended and len(trajectory) < length:
            action, where = plan.action(index, trajectory[-1], taken), f"{single}, step {taken}"
            with raising("singles", where, "a step as in the batch"):
                entry = dict(zip(names, env.step(action), strict=True))
            trajectory.append(copy_entry(where, entry, ignored))
            ended = trajectory[-1]["terminated"] or trajectory[-1]["truncated"]
            taken += 1
        if len(trajectory) >= length:
            return trajectory


def info_of(
    infos: Any, index: int, num_envs: int, where: str, outer: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    """The info of one sub-environment. By Gymnasium's convention ``infos["_key"]`` (num_envs,) bool masks ``"key"``.

    In nested dicts a key without a mask inherits the mask of its dict, `outer`.
    """
    if not isinstance(infos, dict):
        raise ConformanceError("infos", where, "a dict", with_type(infos))
    info: dict[str, Any] = {}
    for key, value in infos.items():
        if isinstance(key, str) and key.startswith("_") and key[1:] in infos:
            continue
        mask = infos.get(f"_{key}", outer)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
            got = "none" if mask is None else brief(mask)
            raise ConformanceError("infos", f"{where}, infos['_{key}']", f"a mask ({num_envs},) bool", got)
        if isinstance(value, dict):
            # `final_info` is a batch of infos with its own masks
            masked = None if key == "final_info" else mask
            part: Any = info_of(value, index, num_envs, f"{where}, infos[{key!r}]", masked)
        elif isinstance(value, np.ndarray) and value.shape[:1] == (num_envs,):
            part = value[index]
        else:
            got = with_type(value)
            raise ConformanceError("infos", f"{where}, infos[{key!r}]", f"an array ({num_envs}, ...) or a dict", got)
        if mask[index]:
            info[key] = part
    return info


def _final(where: str, index: int, infos: dict[str, Any], ended: bool) -> dict[str, Any]:
    """The final observation and the batch of final infos. Checks that they exist exactly if an episode ended."""
    final: dict[str, Any] = {}
    for key in ("obs", "info"):
        name = f"final_{key}"
        exists = name in infos and bool(infos[f"_{name}"][index])
        if exists != ended:
            expected = f"{name} {'for the ended episode' if ended else 'only for ended episodes'}"
            got = "none" if ended else f"_{name} true"
            raise ConformanceError("same_step", f"{where}, sub-environment {index}", expected, got)
        if exists:
            final[key] = infos[name][index] if key == "obs" else infos[name]
    return final
