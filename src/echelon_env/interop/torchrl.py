"""Batches of battles as a TorchRL environment. TorchRL needs to be installed to import this module."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Bounded, Categorical, Composite, MultiCategorical, Unbounded
from torchrl.envs import EnvBase

from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike
from echelon_env.config.schema import ConfigError, check_integer, nearest_name
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE
from echelon_env.envs.autoreset import AutoresetBattles
from echelon_env.envs.controlled import ControlledBattles, check_arguments
from echelon_env.layout.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.opponents import PolicyLike
from echelon_env.render.screen import Screen
from echelon_env.spaces.actions import ActionFormat, choice_sizes
from echelon_env.spaces.agent import AgentSpaces
from echelon_env.spaces.masks import action_masks

_ACTIONS = ("continuous", "multi_discrete", "discrete")
_FLAGS = ("done", "terminated", "truncated")


class TorchRLEnv(EnvBase):  # type: ignore[misc]  # TorchRL is not installed where mypy runs
    """B battles in one TorchRL environment of batch size (B,), stepped at once.

    The teams are groups, ``"blue"`` and ``"red"``, or only ``"blue"`` against an `opponent`. A group has a row for
    every mech of its roster. Dead mechs keep their rows until the battle ends, and share the outcome's reward. The
    entries, without the leading axis B:

    - ``("blue", "observation")`` (n, D) float32 and ``("blue", "alive")`` (n, 1) bool
    - ``("blue", "action_mask")`` (n, K) bool, only with choices
    - ``("blue", "action")`` (n, 27) float32, (n, parts) int64 or (n,) int64, by the format
    - ``("blue", "reward")`` (n, 1) float32
    - ``"state"`` (S,) float32, the global state from blue's side
    - ``"outcome"`` (1,) float32, 1 if blue has won, -1 if it has lost, 0 for a draw and until the end
    - ``"done"``, ``"terminated"``, ``"truncated"`` (1,) bool, whether the battle is over

    `set_seed(s)` seeds battle i with s + i at its next reset. Without it the battles have random seeds.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    num_envs
        Number of battles B.
    opponent
        The policy of red, in the formats of `BattleEnv`. None: both teams learn.
    action
        ``"continuous"``, ``"multi_discrete"`` or ``"discrete"``. With choices, random actions of the
        environment itself keep to the masks.
    maps
        A pool of maps, see `BattleEngine`.
    num_threads
        Threads that share a step.
    device
        Device of the tensors. The battles are stepped on the CPU.
    seed
        As `set_seed`.
    **overrides
        Fields of the configuration to change, without `dead_agents`.

    Raises
    ------
    ConfigError
        For an invalid argument.

    Examples
    --------
    >>> env = TorchRLEnv("skirmish", num_envs=8, opponent="novice")  # doctest: +SKIP
    >>> env.rollout(20)["next", "blue", "reward"].shape  # doctest: +SKIP
    torch.Size([8, 20, 5, 1])
    """

    def __init__(
        self,
        scenario: ScenarioLike = "skirmish",
        num_envs: int = 1,
        *,
        opponent: PolicyLike | None = "novice",
        action: ActionFormat = "continuous",
        maps: Maps = None,
        num_threads: int = 1,
        device: Any = "cpu",
        seed: int | None = None,
        **overrides: Unpack[Overrides],
    ) -> None:
        if action not in _ACTIONS:
            raise ConfigError(f"action: unknown format {action!r}{nearest_name(str(action), _ACTIONS)}")
        check_arguments(overrides, TorchRLEnv, TorchRLEnv.__init__)  # TorchRL hides the signature
        if "dead_agents" in overrides:
            raise ConfigError("dead_agents: dead mechs keep their rows in TorchRLEnv", "dead_agents")
        count = check_integer("num_envs", num_envs)
        super().__init__(device=device, batch_size=(count,))
        self._battles = ControlledBattles(
            scenario, count, control="all" if opponent is None else "team",
            opponent="novice" if opponent is None else opponent, maps=maps, num_threads=num_threads,
            **(overrides | {"dead_agents": "persist"}),
        )  # fmt: skip
        self.config = self._battles.config
        self._sequences = AutoresetBattles(self._battles, AutoresetMode.DISABLED)
        self._spaces = AgentSpaces(action=action)
        self._screen = Screen(self._battles.engine, "rgb_array")
        blue, controlled = len(self.config.blue), self._battles.num_controlled
        self._rows = {"blue": slice(0, blue)} | ({"red": slice(blue, controlled)} if opponent is None else {})
        self.group_map = {team: self._sequences.names[rows] for team, rows in self._rows.items()}
        self._generator = np.random.default_rng()
        self._seeds: list[int | None] = [None] * count
        self._terminated, self._truncated = np.zeros((2, count, 1), np.bool_)
        self._make_specs()
        if seed is not None:
            self.set_seed(seed)

    def render(self, mode: str = "rgb_array") -> Any:
        """The first battle from above, (H, W, 3) uint8."""
        return self._screen.render()

    def close(self, **kwargs: Any) -> None:
        """Stop the threads of the battles."""
        self._screen.close()
        self._battles.close()
        super().close(**kwargs)

    def _set_seed(self, seed: int | None) -> None:
        self._generator = np.random.default_rng(seed)
        self._seeds = [None if seed is None else seed + battle for battle in range(len(self._terminated))]

    def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDict:
        if kwargs.keys() - {"seed"}:
            raise TypeError(f"reset: expected no keyword arguments but seed, got {', '.join(kwargs)}")
        if kwargs.get("seed") is not None:
            self._set_seed(kwargs["seed"])
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        mask = np.ones(len(self._terminated), np.bool_) if chosen is None else chosen.reshape(-1).cpu().numpy()
        if mask.any():
            self._sequences.reset(self._seeds, self._generator, {"reset_mask": mask})
            self._seeds = [None if reset else seed for seed, reset in zip(self._seeds, mask, strict=True)]
            self._terminated[mask] = self._truncated[mask] = False
        return self._entries(rewards=False)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        stepped = tensordict.get("_step", None)
        if stepped is not None and not (stepped.reshape(-1).cpu().numpy() | self._over[:, 0]).all():
            raise RuntimeError("_step: expected all battles that are not over, because all are stepped at once")
        actions = np.concatenate([tensordict[team, "action"].cpu().numpy() for team in self._rows], axis=1)
        vectors = self._spaces.read_rows(actions, *actions.shape[:2])
        _, self._rewards, terminated, truncated = self._battles.step(vectors)
        # those of a battle that is over do not change until it is reset
        self._terminated = self._terminated | terminated[:, :1]
        self._truncated = self._truncated | truncated[:, :1]
        return self._entries(rewards=True)

    @property
    def _over(self) -> NDArray[np.bool_]:
        return self._terminated | self._truncated

    def _entries(self, rewards: bool) -> TensorDict:
        """The TensorDict of a reset, or with rewards of a step."""
        battles = self._battles
        observations, alive = battles.observations, battles.alive[..., None]
        masks = None
        if self._spaces.masked:
            masks = battles.rows_of(action_masks(battles.engine, self._spaces.action)).astype(np.bool_)
        entries: dict[str, Any] = {
            "state": battles.engine.global_state(BLUE),
            "outcome": np.where(battles.battle_over, battles.learner_outcome, 0).astype(np.float32)[:, None],
            "terminated": self._terminated.copy(),
            "truncated": self._truncated.copy(),
            "done": self._over,
        }
        for team, rows in self._rows.items():
            arrays = {"observation": observations[:, rows], "alive": alive[:, rows]}
            if masks is not None:
                arrays["action_mask"] = masks[:, rows]
            if rewards:
                arrays["reward"] = self._rewards[:, rows, None]
            entries[team] = group = TensorDict(
                {name: self._tensor(array) for name, array in arrays.items()},
                (*self.batch_size, len(self.group_map[team])), device=self.device,
            )  # fmt: skip
            if masks is not None:
                self.full_action_spec[team, "action"].update_mask(group["action_mask"])
        return TensorDict(
            {name: self._tensor(entry) if isinstance(entry, np.ndarray) else entry for name, entry in entries.items()},
            self.batch_size,
            device=self.device,
        )

    def _tensor(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def _action_spec(self, shape: tuple[int, ...]) -> Any:
        """The spec of a team's actions, (B, n) of them."""
        if self._spaces.action == "continuous":
            return Bounded(ACTION_LOW, ACTION_HIGH, (*shape, ACTION_DIM), device=self.device)
        sizes = choice_sizes(self._spaces.action)
        if self._spaces.action == "discrete":
            return Categorical(sizes[0], shape=shape, device=self.device)
        return MultiCategorical(sizes, shape=(*shape, len(sizes)), device=self.device)

    def _make_specs(self) -> None:
        batch, device = self.batch_size, self.device
        space: Any = self._spaces.observation_space
        state = self._battles.engine.global_state_bounds()
        observations: dict[str, Any] = {
            "state": _box(*state, batch, device),
            "outcome": Unbounded((*batch, 1), device=device),
        }
        actions, rewards = {}, {}
        for team, rows in self._rows.items():
            shape = (*batch, rows.stop - rows.start)
            seen = {
                "observation": _box(space.low, space.high, shape, device),
                "alive": Categorical(2, shape=(*shape, 1), dtype=torch.bool, device=device),
            }
            if self._spaces.masked:
                masks = (*shape, sum(choice_sizes(self._spaces.action)))
                seen["action_mask"] = Categorical(2, shape=masks, dtype=torch.bool, device=device)
            observations[team] = Composite(seen, shape=shape, device=device)
            actions[team] = Composite({"action": self._action_spec(shape)}, shape=shape, device=device)
            rewards[team] = Composite({"reward": Unbounded((*shape, 1), device=device)}, shape=shape, device=device)
        flags = {name: Categorical(2, shape=(*batch, 1), dtype=torch.bool, device=device) for name in _FLAGS}
        self.observation_spec = Composite(observations, shape=batch, device=device)
        self.action_spec = Composite(actions, shape=batch, device=device)
        self.reward_spec = Composite(rewards, shape=batch, device=device)
        self.done_spec = Composite(flags, shape=batch, device=device)


def _box(low: NDArray[np.float32], high: NDArray[np.float32], batch: tuple[int, ...], device: Any) -> Any:
    """A spec (*batch, *low.shape) of vectors within bounds."""
    shape = (*batch, *low.shape)
    bounds = (torch.from_numpy(np.broadcast_to(bound, shape).copy()) for bound in (low, high))
    return Bounded(*bounds, shape, device=device, dtype=torch.float32)
