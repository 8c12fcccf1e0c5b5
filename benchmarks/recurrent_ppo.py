"""A recurrent PPO in one file, in the manner of CleanRL's ppo_atari_lstm.py: what our algorithm is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from echelon_env.networks.config import NetworkConfig
from echelon_train.config.ppo import PPOConfig
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.policy.raw_actions import RAW_DIM, environment_actions


class Agent(BattlePolicy):
    """The network, its LSTM walking through time with the states masked wherever an episode has ended."""

    @staticmethod
    def _process_sequence(
        features: Tensor, lstm_states: Any, episode_starts: Any, lstm: nn.LSTM
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        hidden, cell = lstm_states
        rows = hidden.shape[1]
        outputs = []
        starts = episode_starts.view(-1, 1, rows, 1)
        for step, start in zip(features.view(-1, rows, features.shape[1]), starts, strict=True):
            output, (hidden, cell) = lstm(step.unsqueeze(0), ((1.0 - start) * hidden, (1.0 - start) * cell))
            outputs.append(output)
        return torch.cat(outputs).flatten(0, 1), (hidden, cell)

    def actor_mask(self, observations: Any) -> None:
        """All rows."""


class RecurrentPPO:
    """Recurrent PPO, a minibatch of which is the whole rollout of some rows.

    `begin` is to be called before the first `collect`.
    """

    def __init__(self, env: VecEnv, network: NetworkConfig, ppo: PPOConfig) -> None:
        self.env, self.ppo = env, ppo
        self.agent = Agent(observation_space(), action_space(), lambda _: ppo.learning_rate.start, network)
        steps, rows = ppo.n_steps, env.num_envs
        self.observations = torch.zeros(steps, rows, *observation_space().shape)
        self.actions = torch.zeros(steps, rows, RAW_DIM)
        self.log_probs, self.rewards, self.dones, self.values = (torch.zeros(steps, rows) for _ in range(4))
        self.advantages = torch.zeros(steps, rows)
        self.state = self._states(torch.zeros(2, 1, rows, network.width))
        self.initial_state = self.state

    def begin(self, observations: np.ndarray[Any, Any]) -> None:
        """Go on from observations (rows, D) in the midst of episodes."""
        self.next_observation = torch.as_tensor(observations)
        self.next_done = torch.zeros(self.env.num_envs)

    @torch.no_grad()
    def collect(self) -> None:
        """Fill the storage, and estimate advantages."""
        self.initial_state = self._states(torch.stack(self.state.pi).clone())
        for step in range(self.ppo.n_steps):
            self.observations[step], self.dones[step] = self.next_observation, self.next_done
            action, value, log_prob, self.state = self.agent(self.next_observation, self.state, self.next_done)
            self.actions[step], self.values[step], self.log_probs[step] = action, value.flatten(), log_prob.sum(1)
            observation, reward, done, _ = self.env.step(environment_actions(action).numpy())
            self.rewards[step] = torch.as_tensor(reward)
            self.next_observation, self.next_done = torch.as_tensor(observation), torch.as_tensor(done).float()
        value = self.agent.predict_values(self.next_observation, self.state.vf, self.next_done).flatten()
        ahead, going_on = torch.zeros_like(value), 1.0 - self.next_done
        for step in reversed(range(self.ppo.n_steps)):
            delta = self.rewards[step] + self.ppo.gamma.start * value * going_on - self.values[step]
            self.advantages[step] = ahead = delta + self.ppo.gamma.start * self.ppo.gae_lambda * going_on * ahead
            value, going_on = self.values[step], 1.0 - self.dones[step]

    def train(self) -> None:
        """Update the agent from the storage."""
        rows = self.env.num_envs
        at_once = max(1, self.ppo.batch_size // self.ppo.n_steps)
        for _ in range(self.ppo.n_epochs):
            for chosen in torch.split(torch.randperm(rows), at_once):
                self._step(chosen)

    def _step(self, chosen: Tensor) -> None:
        def take(kept: Tensor) -> Tensor:
            return kept[:, chosen].flatten(0, 1)

        states = self._states(torch.stack(self.initial_state.pi)[:, :, chosen])
        values, log_probs, entropy = self.agent.evaluate_actions(
            take(self.observations), take(self.actions), states, take(self.dones)
        )
        assert entropy is not None
        advantages, clip = take(self.advantages), self.ppo.clip_range.start
        returns = advantages + take(self.values)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        ratio = (log_probs - take(self.log_probs)).exp()
        policy_loss = torch.max(-advantages * ratio, -advantages * ratio.clamp(1.0 - clip, 1.0 + clip)).mean()
        value_loss = (values.flatten() - returns).square().mean()
        loss = policy_loss - self.ppo.ent_coef.start * entropy.mean() + self.ppo.vf_coef * value_loss
        self.agent.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.agent.parameters(), self.ppo.max_grad_norm)
        self.agent.optimizer.step()

    @staticmethod
    def _states(both: Tensor) -> RNNStates:
        """The states of an LSTM that actor and critic share, from the hidden and the cell state (2, 1, rows, units)."""
        state = both[0], both[1]
        return RNNStates(state, state)
