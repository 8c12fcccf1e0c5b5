"""`TorchBattleEnv`: a batch of battles whose arrays are torch tensors."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack, get_args

import numpy as np
import torch
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from torch import Tensor

from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike, make_config, title_of
from echelon_env.config.schema import ConfigError, check_integer, nearest_name
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.maps import Maps, map_pool
from echelon_env.engine.state import BLUE, RED
from echelon_env.envs.autoreset import AutoresetBattles, check_autoreset_mode, check_max_cycles
from echelon_env.envs.controlled import ControlledBattles, check_arguments
from echelon_env.envs.infos import INFO_NAMES, agent_names
from echelon_env.gpu.battles import Batch, DeviceBattles, Fields, HostBattles
from echelon_env.gpu.memory import DeviceMemory, Launch, cuda_launcher
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.spaces.actions import VALUE_TABLES, choice_sizes
from echelon_env.spaces.agent import AgentSpaces
from echelon_env.spaces.masks import COLUMNS, MASK_SIZE, discrete_masks, write_masks

Action = Literal["continuous", "multi_discrete", "discrete"]
"""The action formats, see `echelon_env.spaces.actions`."""

Step = tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]

_OTHER_NAMES = {"living": "alive", "components": "reward_components", "statistics": "episode_statistics"}
"""Infos whose names are not those of the fields of AGENT."""


class TorchBattleEnv:
    """B battles with every mech as an agent, with torch tensors (B, M, ...), on a GPU or on the CPU.

    It is `BattleBatchEnv` with tensors: the same rows, seeds, rewards and flags, byte for byte on every device. On a
    GPU the battles lie in its memory, a thread plays each, and nothing is copied through the host. The next call
    overwrites the tensors that a call has returned; clone what you keep. A step does not wait for the GPU, and a CUDA
    graph can record it.

    Infos are tensors without masks: `alive`, `present`, `bad_actions`, `own_share`, `enemy_share`, `own_score`,
    `enemy_score`, `outcome` (B, M), `reward_components` (B, M, K), `episode_statistics` (B, M, S), `map_seed` (B,)
    int64 with the bits of the seed, and `reason` (B,) int8, an index into `echelon_env.engine.state.REASONS`. With
    ``SAME_STEP`` they have `final_obs` (B, M, D) and `final_info`, which count where `_final_obs` (B,) is true.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    num_envs
        Number of battles B.
    device
        ``"cuda"``, another CUDA device, or ``"cpu"``.
    action
        ``"continuous"``, ``"multi_discrete"`` or ``"discrete"``. Choices out of range count as the nearest one.
    max_cycles
        Decisions after which all agents are truncated. None: no limit.
    maps
        A number of maps, a directory of recipes, or a `MapPool`. All of its maps are generated at once.
    regenerate
        Number of consecutive battles on the same map.
    num_threads
        Threads that step battles on the CPU.
    autoreset_mode
        ``"NEXT_STEP"`` or ``"SAME_STEP"``, as in Gymnasium's vector environments.
    **overrides
        Fields of the configuration to change.

    Raises
    ------
    ConfigError
        For invalid arguments, without a GPU that can play, and for more battles than the GPU's memory or the host's.

    Examples
    --------
    >>> envs = TorchBattleEnv("duel", num_envs=4, device="cpu", maps=2)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations, rewards, terminated, truncated, infos = envs.step(torch.zeros(4, 2, 27))
    >>> rewards.shape, bool(infos["present"].all())
    (torch.Size([4, 2]), True)
    """

    metadata: dict[str, Any] = {**INFO_NAMES}  # noqa: RUF012

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        num_envs: int = 1,
        *,
        device: str | torch.device = "cuda",
        action: Action = "continuous",
        max_cycles: int | None = None,
        maps: Maps = 64,
        regenerate: int = 1,
        num_threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **overrides: Unpack[Overrides],
    ) -> None:
        check_arguments(overrides, TorchBattleEnv)
        if action not in get_args(Action):
            raise ConfigError(f"unknown action {action!r}{nearest_name(str(action), get_args(Action))}", "action")
        config = make_config(scenario, **overrides)
        self.num_envs, mode = check_integer("num_envs", num_envs), check_autoreset_mode(autoreset_mode)
        limits = check_max_cycles(max_cycles), check_integer("regenerate", regenerate)
        pool = map_pool(maps, config)
        if mode == AutoresetMode.DISABLED:
            raise ConfigError("autoreset_mode: expected NEXT_STEP or SAME_STEP, got DISABLED", "autoreset_mode")
        if pool is None:
            raise ConfigError("maps: expected a number of maps, a directory of recipes or a MapPool, got None", "maps")
        self.config, self.device = config, _device(device)
        self._maps, self._was_reset = pool, False
        self._title = f"{title_of(scenario, config)}, {num_envs} battles, {self.device}"
        self.agents, self.autoreset_mode = tuple(agent_names(config)), mode
        self.num_mechs, self._action = len(self.agents), action
        spaces = AgentSpaces("flat", action)
        self.single_observation_space, self.single_action_space = spaces.observation_space, spaces.action_space
        launch = self._launcher()
        self._battles: Batch
        if launch is None:
            controlled = ControlledBattles(config, num_envs, control="all", maps=pool, num_threads=num_threads)
            self._battles = HostBattles(AutoresetBattles(controlled, mode, max_cycles=limits[0], regenerate=limits[1]))
        else:
            try:
                memory = DeviceMemory(self.device, launch)
                self._battles = DeviceBattles(config, num_envs, pool, memory, mode, *limits)
            except torch.OutOfMemoryError as error:
                raise ConfigError(f"num_envs: {num_envs} battles do not fit into the GPU's memory: {error}") from None
        self._tables = {name: tuple(self._tensor(each) for each in table) for name, table in VALUE_TABLES.items()}
        self._columns = self._tensor(COLUMNS[0]), self._tensor(COLUMNS[1])
        self._entries = torch.arange(ACTION_DIM, device=self.device)
        self._limits = {name: self._tensor(np.array(choice_sizes(name)) - 1) for name in VALUE_TABLES}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title}, {self._action})"

    @functools.cached_property
    def observation_space(self) -> Space[Any]:
        """The space of the observations (B, M, D), whose bounds take twice their memory."""
        return self._batched(self.single_observation_space)

    @functools.cached_property
    def action_space(self) -> Space[Any]:
        """The space of the actions."""
        return self._batched(self.single_action_space)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Tensor, dict[str, Any]]:
        """Start battles: all, or those of ``options["reset_mask"]``, see `BattleBatchEnv.reset`. It waits for the GPU.

        Returns observations (B, M, D) float32 and infos.
        """
        outcome = self._battles.reset(seed, options)
        self._was_reset = True
        return outcome.observations, _infos(outcome.agents)

    def step(self, actions: Tensor) -> Step:
        """Take a decision in every battle, with an action for every row; those of absent rows are ignored.

        Parameters
        ----------
        actions
            (B, M, A) numbers, (B, M, parts) integers or (B, M) integers, by the format, on the device.

        Returns
        -------
        observations, rewards, terminated, truncated, infos
            (B, M, D) float32; (B, M) float32; (B, M) bool; (B, M) bool, never together with `terminated`; a dict.

        Raises
        ------
        ResetNeeded
            Before `reset`.
        ValueError
            For actions of another shape, kind or device.
        """
        self._check_reset("step()")
        outcome = self._battles.step(self._vectors(actions))
        infos = _infos(outcome.agents)
        if outcome.final is not None:
            infos |= {"final_obs": outcome.final.observations, "_final_obs": outcome.final.done}
            infos["final_info"] = _infos(outcome.final.agents)
        rewards, terminated, truncated = outcome.results
        return outcome.observations, rewards, terminated, truncated, infos

    def state(self, team: int = BLUE) -> Tensor:
        """The global states (B, S) float32, see `BattleBatchEnv.state`.

        Raises ResetNeeded before the first `reset`, ValueError for another team.
        """
        if team not in (BLUE, RED):
            raise ValueError(f"team: expected {BLUE} or {RED}, got {team!r}")
        self._check_reset("state()")
        return self._battles.global_state(team)

    def action_masks(self) -> Tensor:
        """Masks (B, M, K) bool of the actions; of the multi-discrete ones if the format has none.

        Raises ResetNeeded before the first `reset`.
        """
        self._check_reset("action_masks()")
        masks = torch.zeros(self.num_envs, self.num_mechs, MASK_SIZE, dtype=torch.int8, device=self.device)
        can = self._battles.possibilities()
        write_masks(can, masks, self.config)
        chosen: Tensor = discrete_masks(masks, self._columns) if self._action == "discrete" else masks.bool()
        return chosen

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Copies of all arrays on which later decisions depend: a `BattleEngine.snapshot`, on every device.

        The seeds of later battles and the returns of episodes are not in it. Raises ResetNeeded before the first
        `reset`.
        """
        self._check_reset("snapshot()")
        return self._battles.snapshot()

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> Tensor:
        """Restore a snapshot of the same configuration and number of battles, from any device or a `BattleEngine`.

        Returns the observations (B, M, D). Episodes begin with it. Battles that are over are followed by the next ones
        in the next step. Raises ResetNeeded before the first `reset`, and ValueError, with nothing changed, for another
        snapshot.
        """
        self._check_reset("restore()")
        return self._battles.restore(snapshot)

    def battle(self, battle: int) -> BattleEngine:
        """A copy of a battle on the CPU, as an engine of one battle, to render or to examine it.

        Raises ResetNeeded before the first `reset`, and IndexError if there is no such battle.
        """
        self._check_reset("battle()")
        if not 0 <= battle < self.num_envs:
            raise IndexError(f"battle: expected 0 to {self.num_envs - 1}, got {battle}")
        engine = BattleEngine(self.config, 1, maps=self._maps)
        engine.restore(self._battles.snapshot(slice(battle, battle + 1)))
        return engine

    def close(self) -> None:
        """Stop the threads of battles on the CPU."""
        self._battles.close()

    def _batched(self, space: Space[Any]) -> Space[Any]:
        return batch_space(batch_space(space, self.num_mechs), self.num_envs)

    def _check_reset(self, what: str) -> None:
        if not self._was_reset:
            raise ResetNeeded(f"{what} needs battles: call reset() first")

    def _launcher(self) -> Launch | None:
        """What runs kernels on the device; None for battles that the CPU's library plays."""
        return cuda_launcher(self.device) if self.device.type == "cuda" else None

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def _vectors(self, actions: Tensor) -> Tensor:
        """Action vectors (B, M, A) of checked actions."""
        shape = (self.num_envs, self.num_mechs, *(self.single_action_space.shape or ()))
        if not isinstance(actions, Tensor) or actions.device != self.device or actions.shape != shape:
            got = (
                f"{tuple(actions.shape)} on {actions.device}" if isinstance(actions, Tensor) else type(actions).__name__
            )
            raise ValueError(f"actions: expected a tensor {shape} on {self.device}, got {got}")
        if self._action == "continuous":
            if not actions.dtype.is_floating_point:
                raise ValueError(f"actions: expected floats, got {actions.dtype}")
            return actions.detach().float()
        if actions.dtype.is_floating_point or actions.dtype.is_complex:
            raise ValueError(f"actions: expected integers, got {actions.dtype}")
        part_of, values = self._tables[self._action]
        choices = actions.long().view(self.num_envs, self.num_mechs, -1)
        return values[self._entries, choices.clamp(min=0).minimum(self._limits[self._action])[..., part_of]]


def _device(device: str | torch.device) -> torch.device:
    """The device, with a number if it is a GPU. Raises `ConfigError`."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ConfigError(f"device: expected 'cuda' or 'cpu', got {device!r} ({error})", "device") from None
    if found.type not in ("cuda", "cpu"):
        raise ConfigError(f"device: expected 'cuda' or 'cpu', got {device!r}", "device")
    if found.type == "cpu":
        return torch.device("cpu")
    if found.index is None and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return found


def _infos(agents: Fields) -> dict[str, Any]:
    named = {_OTHER_NAMES.get(name, name): each for name, each in agents.items() if name not in ("alive", "valid")}
    seeds = agents["map_seed"][:, 0].view(torch.int64)  # CUDA cannot index unsigned numbers
    return named | {"map_seed": seeds, "reason": agents["reason"][:, 0]}
