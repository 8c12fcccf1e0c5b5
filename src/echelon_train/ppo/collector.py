"""Collection of rollouts, with bootstrap values for truncated episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from echelon_train.policy.choices import nearest_choices
from echelon_train.policy.sequences import Observations, SequencePolicy
from echelon_train.ppo.buffer import ChunkBuffer
from echelon_train.ppo.cuda_graphs import Graphed
from echelon_train.ppo.gae import advantages_and_returns
from echelon_train.ppo.losses import recurrent_states, state_tensors
from echelon_train.ppo.observations import Staging, put, share_states, store, tensors_of, tree_map, with_teams
from echelon_train.ppo.teacher import BY_TEACHER, Teacher


class Decision(NamedTuple):
    """A step's decision in all rows."""

    actions: Tensor  # (rows, ...) raw
    played: NDArray[Any]  # (rows, ...) the environment's, of the policy or of the teacher
    active: int  # rows whose actions have an effect


class Truncation(NamedTuple):
    """An episode that was truncated in a rollout."""

    step: int
    row: int
    observation: Any  # the final one
    states: Tensor  # the recurrent states after the step, (tensors, layers, units)


class Collector:
    """Fills a `ChunkBuffer`: `begin`, then for each step `act`, a step of the environment and `store`; then `finish`.

    `act` is the only part that computes decisions. Where kernels are recorded, everything that it computes on the
    device, to the tensors of the buffer, is one CUDA graph. Rewards and ends go to the device at the end of a rollout.

    Parameters
    ----------
    policy
        The policy.
    rows
        Rows of the environment.
    state_rows
        Rows in succession that have one global state, see `shared_rows`.
    num_steps, chunk
        As for `ChunkBuffer`.
    recorded
        Whether decisions are recorded in CUDA graphs, see `is_recorded`.
    teacher
        Labels the observations with its actions; None: no labels.
    """

    def __init__(
        self,
        policy: SequencePolicy,
        rows: int,
        state_rows: int,
        num_steps: int,
        chunk: int,
        recorded: bool = False,
        teacher: Teacher | None = None,
    ) -> None:
        self.teacher = teacher
        self._policy, self._device = policy, policy.device
        self.staging, self._small = Staging(self._device), Staging(self._device)
        self._space, self._own_critic_lstm = policy.observation_space, policy.lstm_critic is not None
        lstm = policy.lstm_actor
        zeros = torch.zeros(lstm.num_layers, rows, lstm.hidden_size, device=self._device)
        self.observations: Any = None
        """The environment's last ones."""
        self.starts = np.ones(rows, np.bool_)
        """(rows,) bool: where an episode starts with the last observations."""
        self.states = recurrent_states(tuple(zeros.clone() for _ in range(4 if self._own_critic_lstm else 2)))
        """The recurrent states before the next step."""
        self._learner_share = 1.0
        self._truncations: list[Truncation] = []
        shape, dtype = policy.raw_action()
        self.buffer = ChunkBuffer(
            num_steps,
            rows,
            chunk,
            self._space,
            shape,
            dtype,
            self.state_tensors(),
            len(policy.blocks),
            teacher is not None,
            self._device,
            policy.dense,
            state_rows,
        )
        self._graphs = (Graphed(self._decided, policy), Graphed(advantages_and_returns, policy)) if recorded else None
        self._steps = torch.arange(num_steps, device=self._device)
        self._rewards = np.zeros((num_steps, rows), np.float32)
        self._dones = np.zeros((num_steps, rows), np.bool_)

    def state_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of `states`, (layers, rows, units) each: the actor's, and the critic's if it has an LSTM."""
        return state_tensors(self.states, self._own_critic_lstm)

    def begin(self, observations: Any, starts: Any, labelled: bool, learner_share: float) -> None:
        """Begin a rollout with these observations and starts of episodes (rows,).

        If it is `labelled`, the teacher labels it, and plays the battles but for the share of the learner.
        """
        self.observations, self.starts = observations, np.asarray(starts, np.bool_)
        self._learner_share, self._truncations = learner_share, []
        self.buffer.bootstraps.zero_()
        self.buffer.has_labels = labelled

    @torch.no_grad()
    def act(self, step: int) -> Decision:
        """Decide on the last observations, and store the decision in the buffer."""
        buffer, policy = self.buffer, self._policy
        buffer.store_states(step, self.state_tensors())
        seen = self._tensors(self.observations)
        active = policy.actor_mask(seen)
        if active is None:
            active = torch.ones(len(self.starts), dtype=torch.bool)
        given = {"starts": torch.as_tensor(self.starts, dtype=torch.float32), "active": active}
        observations, flags = self._on_device(seen), self._small.to_device(given)
        place = step if self._graphs is None else self._steps[step]
        played, self.states = self._decide(observations, flags, self.states, policy.noise(len(active)), place)
        actions = played.cpu().numpy()
        if buffer.has_labels:
            actions = self._label(step, actions)
        return Decision(buffer.actions[step], actions, int(active.sum()))

    def _decide(self, *arguments: Any) -> tuple[Tensor, RNNStates]:
        """`_decided`, recorded if it is."""
        decided: tuple[Tensor, RNNStates] = (self._graphs[0] if self._graphs else self._decided)(*arguments)
        return decided

    def _decided(
        self,
        observations: Observations,
        flags: Observations,
        states: RNNStates,
        noise: Tensor | None,
        step: int | Tensor,
    ) -> tuple[Tensor, RNNStates]:
        """Decide, and store the decision in the buffer. Returns the environment's actions and the next states.

        `flags`: ``starts`` (rows,) float32, where episodes start; ``active`` (rows,) bool, rows whose actions have an
        effect.
        """
        assert isinstance(flags, dict)
        buffer, starts = self.buffer, flags["starts"]
        actions, values, log_probs, after = self._policy.decide(observations, states, starts, noise)
        store(buffer.observations, step, observations)  # environments of others may overwrite them in a step
        put(buffer.actions, step, actions.view(buffer.actions.shape[1:]))
        put(buffer.values, step, self._denormalized(values.flatten()))
        put(buffer.log_probs, step, log_probs.view(len(starts), -1))
        put(buffer.actor_mask, step, flags["active"])
        put(buffer.episode_starts, step, starts > 0)
        return self._policy.environment_actions(actions), after

    def note_players(self, dones: NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """In a labelled rollout, say in the infos of the battles that end whether the teacher has played them."""
        if self.teacher is not None and self.buffer.has_labels:
            for row in np.flatnonzero(dones):
                infos[row][BY_TEACHER] = bool(self.teacher.plays[row])

    def store(
        self,
        step: int,
        observations: Any,
        rewards: NDArray[Any],
        dones: NDArray[np.bool_],
        infos: list[dict[str, Any]],
    ) -> None:
        """Store what the environment returned for a decision."""
        self._rewards[step], self._dones[step] = rewards, dones
        if step == self.buffer.num_steps - 1:
            self.buffer.rewards.copy_(torch.from_numpy(self._rewards))
            self.buffer.dones.copy_(torch.from_numpy(self._dones))
        self.observations, self.starts = observations, dones
        rows = [row for row in np.flatnonzero(dones).tolist() if infos[row].get("TimeLimit.truncated", False)]
        rows = [row for row in rows if infos[row].get("terminal_observation") is not None]
        if rows:
            places = torch.as_tensor(rows, device=self._device)
            states = torch.stack([each[:, places] for each in self.state_tensors()]).unbind(2)
            self._truncations += [
                Truncation(step, row, _copied(infos[row]["terminal_observation"]), state)
                for row, state in zip(rows, states, strict=True)
            ]

    @torch.no_grad()
    def finish(self, gamma: float, gae_lambda: float) -> None:
        """Compute the advantages and returns of a full buffer from its rewards and values."""
        self._bootstrap()
        buffer = self.buffer
        starts = torch.as_tensor(self.starts, dtype=torch.float32, device=self._device)
        last_values = self._values(self._on_device(self._tensors(self.observations)), self.states, starts)
        factors = (torch.full((), each, dtype=torch.float64, device=self._device) for each in (gamma, gae_lambda))
        estimate = advantages_and_returns if self._graphs is None else self._graphs[1]
        buffer.advantages[:], buffer.returns[:] = estimate(
            buffer.rewards, buffer.values, last_values, buffer.dones, buffer.bootstraps, *factors
        )

    def _label(self, step: int, actions: NDArray[Any]) -> NDArray[Any]:
        """Store the teacher's actions; returns the actions to play."""
        assert self.teacher is not None and self.buffer.labels is not None
        self.teacher.begin(self.starts, 1.0 - self._learner_share)
        seen = self.observations
        labels = self.teacher.act(seen["observation"] if isinstance(seen, dict) else seen)
        self.buffer.labels[step] = nearest_choices(torch.from_numpy(labels)).to(self._device)
        return self.teacher.replace(actions, labels)

    def _bootstrap(self) -> None:
        """Store the values of the final observations, of many at once: a pass for a few takes as long."""
        rows_at_once = self.buffer.num_rows
        for first in range(0, len(self._truncations), rows_at_once):
            steps, rows, final, states = zip(*self._truncations[first : first + rows_at_once], strict=True)
            stacked = (
                {name: np.stack([each[name] for each in final]) for name in self._space}
                if isinstance(self._space, spaces.Dict)
                else np.stack(final)
            )
            observations = tree_map(lambda part: part.to(self._device), tensors_of(self._space, stacked))
            before = recurrent_states(torch.stack(states, 2).unbind())
            values = self._values(observations, before, torch.zeros(len(rows), device=self._device))
            places = torch.as_tensor([steps, rows], device=self._device)
            self.buffer.bootstraps[places[0], places[1]] = values
        self._truncations = []  # their observations need memory

    def _values(self, observations: Observations, states: RNNStates, starts: Tensor) -> Tensor:
        """Values (rows,) of observations, in units of returns."""
        return self._denormalized(self._policy.predict_values(observations, states.vf, starts).flatten())

    def _denormalized(self, predictions: Tensor) -> Tensor:
        normalizer = self._policy.return_normalizer
        return predictions if normalizer is None else normalizer.denormalize(predictions)

    def _tensors(self, observations: Any) -> Observations:
        """The environment's observations as tensors on the CPU, without states that rows share."""
        return share_states(tensors_of(self._space, observations), self.buffer.state_rows)

    def _on_device(self, observations: Observations) -> Observations:
        return with_teams(self.staging.to_device(observations), self.buffer.teams)


def shared_rows(policy: SequencePolicy, env: VecEnv) -> int:
    """The environment's `state_rows`; 1 if the policy does not share states, or if the environment is wrapped."""
    own = policy.shares_states and hasattr(type(env), "state_rows")  # a wrapper may change single rows
    return int(env.state_rows) if own else 1


def pin_memory(env: VecEnv, device: torch.device) -> None:
    """For a GPU, let an environment that can do so write into page-locked memory."""
    if device.type == "cuda" and hasattr(type(env), "pin_memory"):  # a wrapper may copy observations
        env.pin_memory()


def _copied(observation: Any) -> Any:
    """A copy of a row's observation, which environments of others may overwrite."""
    if isinstance(observation, dict):
        return {name: np.array(part) for name, part in observation.items()}
    return np.array(observation)
