"""Collection of rollouts, with bootstrap values for truncated episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from echelon_train.policy.raw_actions import raw_actions
from echelon_train.policy.sequences import Observations
from echelon_train.ppo import distributed
from echelon_train.ppo.buffer import ChunkBuffer
from echelon_train.ppo.gae import advantages_and_returns
from echelon_train.ppo.losses import recurrent_states, state_tensors
from echelon_train.ppo.observations import Staging, share_states, store, tensors_of, tree_map, with_teams
from echelon_train.ppo.teacher import BY_TEACHER, Teacher


class Truncation(NamedTuple):
    """An episode that was truncated in a rollout."""

    step: int
    row: int
    observation: Any
    """The final one."""
    states: Tensor
    """The recurrent states after the step, (tensors, layers, units)."""


class ChunkCollector(RecurrentPPO):  # type: ignore[misc]
    """The part of `EchelonRecurrentPPO` that fills a `ChunkBuffer` and computes advantages and returns."""

    chunk: int
    burn_in: int
    num_timesteps: int
    _current_progress_remaining: float
    rollout_buffer: ChunkBuffer
    _last_lstm_states: RNNStates
    _critic_lstm: bool
    _staging: Staging
    before_rollout: Callable[[], object]
    stopping: bool
    teacher: Teacher | None

    def _check_settings(self, num_rows: int) -> None:
        raise NotImplementedError

    def _current(self, name: str) -> Any:
        raise NotImplementedError

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Like stable-baselines3's; it allocates a new buffer if there is none, or none for such an environment."""
        super().set_env(env, force_reset)
        if not hasattr(self, "rollout_buffer") or self.rollout_buffer.state_rows != self._state_rows():
            self._allocate()
        self._prepare_env()

    def set_teacher(self, teacher: Teacher | None) -> None:
        """Label the observations of later rollouts with a teacher's actions, for the kickstart loss; None: no longer.

        The recurrent states are reset.
        """
        self.teacher = teacher
        self._allocate()

    def replace_env(self, env: VecEnv) -> None:
        """Reset another environment and continue training in it; weights, optimizer state and counters are kept.

        It may have another number of rows. The old environment is not closed. Raises ValueError, with nothing changed,
        if the environment does not fit the policy or the settings.
        """
        env = self._wrap_env(env, self.verbose)
        check_for_correct_spaces(env, self.observation_space, self.action_space)
        self._check_settings(env.num_envs)
        self.n_envs = env.num_envs  # the policy does not depend on the number of rows
        self.set_env(env)
        self._allocate()
        self._last_obs = env.reset()
        self._last_episode_starts = np.ones(self.n_envs, np.bool_)
        for buffer in (self.ep_info_buffer, self.ep_success_buffer):
            if buffer is not None:  # it is None before the first `learn`
                buffer.clear()

    def collect_rollouts(self, env: Any, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Call `before_rollout`, which may replace the environment, then collect a rollout.

        Returns False if a callback stops training, in this or another process. A callback that sets `stopping` at the
        start of the rollout, in all processes, stops it before the first step. Time steps count active rows only.
        """
        self.before_rollout()
        self.policy.set_training_mode(False)
        # stable-baselines3 does so only after a rollout: a resumed run would begin with the start of its schedules
        self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
        started = self.num_timesteps
        callback.on_rollout_start()
        if self.stopping:
            return False
        complete = self._collect(callback)
        progress = distributed.all_reduce_sum(
            torch.tensor([self.num_timesteps - started, int(not complete)], dtype=torch.float64)
        )
        self.num_timesteps = started + int(progress[0])
        if progress[1] > 0:
            return False
        with torch.no_grad():
            last_values = self._values(self._on_device(self._last_obs), self._last_lstm_states, self._starts())
        self._compute_advantages(last_values)
        callback.on_rollout_end()
        return True

    def _collect(self, callback: BaseCallback) -> bool:
        """Fill the buffer. Returns False if a callback stops training."""
        env, buffer, policy = self.env, self.rollout_buffer, self.policy
        buffer.bootstraps.zero_()
        teacher = self.teacher if self._current("kickstart_coef") else None
        buffer.has_labels = teacher is not None  # a schedule may begin to rise between this and the update
        truncations: list[Truncation] = []
        for n_steps in range(buffer.num_steps):
            buffer.store_states(n_steps, state_tensors(self._last_lstm_states, self._critic_lstm))
            observations, starts = self._on_device(self._last_obs), self._starts()
            with torch.no_grad():
                actions, values, log_probs, lstm_states = policy(observations, self._last_lstm_states, starts)
                active = policy.actor_mask(observations)
                clipped_actions = policy.environment_actions(actions).cpu().numpy()
            if teacher is not None:
                clipped_actions = self._label(teacher, n_steps, clipped_actions)
            store(buffer.observations, n_steps, observations)  # environments of others may overwrite them in a step
            new_obs, rewards, dones, infos = env.step(clipped_actions)
            num_active = env.num_envs if active is None else int(active.sum())
            self.num_timesteps += num_active
            ended = np.flatnonzero(dones)
            if teacher is not None:
                for row in ended:
                    infos[row][BY_TEACHER] = bool(teacher.plays[row])
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            buffer.actions[n_steps] = actions.view(buffer.actions[n_steps].shape)
            buffer.rewards[n_steps] = torch.as_tensor(rewards)
            buffer.values[n_steps] = self._denormalized(values.flatten())
            buffer.log_probs[n_steps] = log_probs.view(env.num_envs, -1)
            buffer.actor_mask[n_steps] = True if active is None else active
            buffer.episode_starts[n_steps] = starts > 0
            buffer.dones[n_steps] = torch.as_tensor(dones)
            self._last_obs, self._last_episode_starts, self._last_lstm_states = new_obs, dones, lstm_states
            if len(ended):
                self._update_info_buffer([infos[row] for row in ended], dones[ended])
                truncations += self._truncations(n_steps, ended, infos)
        self._bootstrap(truncations)
        return True

    def _label(self, teacher: Teacher, step: int, actions: Any) -> Any:
        """Store the teacher's actions; returns the actions to play."""
        assert self.rollout_buffer.labels is not None
        teacher.begin(np.asarray(self._last_episode_starts, np.bool_), 1.0 - self._current("learner_share"))
        last = self._last_obs
        labels = teacher.act(last["observation"] if isinstance(last, dict) else last)
        self.rollout_buffer.labels[step] = raw_actions(torch.from_numpy(labels)).to(self.device)
        return teacher.replace(actions, labels)

    def _truncations(self, step: int, ended: NDArray[np.int64], infos: list[dict[str, Any]]) -> list[Truncation]:
        """The episodes among the rows `ended` that were truncated at a step and have a final observation."""
        rows = [row for row in ended if infos[row].get("TimeLimit.truncated", False)]
        rows = [row for row in rows if infos[row].get("terminal_observation") is not None]
        if not rows:
            return []
        places = torch.as_tensor(rows, device=self.device)
        states = torch.stack([each[:, places] for each in state_tensors(self._last_lstm_states, self._critic_lstm)])
        return [
            Truncation(step, row, _copied(infos[row]["terminal_observation"]), state)
            for row, state in zip(rows, states.unbind(2), strict=True)
        ]

    @torch.no_grad()
    def _bootstrap(self, truncations: list[Truncation]) -> None:
        """Store the values of the final observations, of many at once: a pass for a few takes as long."""
        for first in range(0, len(truncations), self.n_envs):
            steps, rows, final, states = zip(*truncations[first : first + self.n_envs], strict=True)
            stacked = (
                {name: np.stack([each[name] for each in final]) for name in self.observation_space}
                if isinstance(self.observation_space, spaces.Dict)
                else np.stack(final)
            )
            observations = tree_map(lambda part: part.to(self.device), tensors_of(self.observation_space, stacked))
            before = recurrent_states(torch.stack(states, 2).unbind())
            values = self._values(observations, before, torch.zeros(len(rows), device=self.device))
            places = torch.as_tensor([steps, rows], device=self.device)
            self.rollout_buffer.bootstraps[places[0], places[1]] = values

    def _compute_advantages(self, last_values: Tensor) -> None:
        """Compute the rollout's advantages and returns from its rewards and values."""
        buffer = self.rollout_buffer
        buffer.advantages[:], buffer.returns[:] = advantages_and_returns(
            buffer.rewards,
            buffer.values,
            last_values,
            buffer.dones,
            buffer.bootstraps,
            self._current("gamma"),
            self.gae_lambda,
        )

    def _values(self, observations: Observations, states: RNNStates, starts: Tensor) -> Tensor:
        """Values (rows,) of observations, in units of returns."""
        return self._denormalized(self.policy.predict_values(observations, states.vf, starts).flatten())

    def _denormalized(self, predictions: Tensor) -> Tensor:
        normalizer = self.policy.return_normalizer
        return predictions if normalizer is None else normalizer.denormalize(predictions)

    def _starts(self) -> Tensor:
        return torch.as_tensor(self._last_episode_starts, dtype=torch.float32, device=self.device)

    def _on_device(self, observations: Any) -> Observations:
        buffer, tensors = self.rollout_buffer, tensors_of(self.observation_space, observations)
        return with_teams(self._staging.to_device(share_states(tensors, buffer.state_rows)), buffer.teams)

    def _allocate(self) -> None:
        """Allocate the recurrent states and the buffer for the environment's rows."""
        lstm = self.policy.lstm_actor
        zeros = torch.zeros(lstm.num_layers, self.n_envs, lstm.hidden_size, device=self.device)
        self._prepare_env()
        self._critic_lstm = self.policy.lstm_critic is not None
        self._staging = Staging(self.device)
        self._last_lstm_states = recurrent_states(tuple(zeros.clone() for _ in range(4 if self._critic_lstm else 2)))
        shape, dtype = self.policy.raw_action()
        self.rollout_buffer = ChunkBuffer(
            self.n_steps,
            self.n_envs,
            self.chunk,
            self.burn_in,
            self.observation_space,
            shape,
            dtype,
            state_tensors(self._last_lstm_states, self._critic_lstm),
            len(self.policy.blocks),
            self.teacher is not None,
            self.device,
            self.policy.dense,
            self._state_rows(),
        )

    def _prepare_env(self) -> None:
        """On a GPU, let an environment that can do so write into page-locked memory."""
        if self.device.type == "cuda" and hasattr(type(self.env), "pin_memory"):  # a wrapper may copy observations
            self.env.pin_memory()

    def _state_rows(self) -> int:
        """The environment's `state_rows`; 1 if the policy does not share states, or if the environment is wrapped."""
        own = self.policy.shares_states and hasattr(type(self.env), "state_rows")  # a wrapper may change single rows
        return int(self.env.state_rows) if own else 1


def _copied(observation: Any) -> Any:
    """A copy of a row's observation, which environments of others may overwrite."""
    if isinstance(observation, dict):
        return {name: np.array(part) for name, part in observation.items()}
    return np.array(observation)
