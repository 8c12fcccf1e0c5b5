"""The recurrent policy for battles: an encoder, an LSTM, and an actor and a critic head."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable
from typing import Any, cast

import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor, nn

from echelon_env.config.battle import BattleConfig
from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.observations import STREAMS, Self
from echelon_env.layout.parts import CHOICES, NUM_PARTS
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.possible import action_limits
from echelon_train.policy.action_masks import action_masks
from echelon_train.policy.choices import environment_actions, neutral_choices
from echelon_train.policy.distributions import TARGET_LOGITS, ActionDistribution, initial_bias
from echelon_train.policy.encoders import BattleEncoder, FlatEncoder, SetEncoder, StreamEncoder, select_rows
from echelon_train.policy.initial_weights import orthogonal, orthogonal_lstm
from echelon_train.policy.lstm import run_dense
from echelon_train.policy.sequences import (
    STATE,
    TEAM,
    ActionEvaluation,
    LstmState,
    Observations,
    SequencePolicy,
    Sequences,
)
from echelon_train.policy.spaces import flat_space

_ALIVE = STREAMS["self"].start + Self.ALIVE
_OWN = STREAMS["objective"].stop
"""Columns of an observation before its tables: what a mech knows of itself and the objective."""


class BattlePolicy(SequencePolicy):
    """One recurrent policy for all mechs; a mech's class and equipment are in its observation.

    An encoder computes features from the observation. The heads get the LSTM's output plus these features (a residual
    connection), so they see the observation from the first update on. Actions are choices: `ActionDistribution`.

    The critic shares the actor's encoder and LSTM, and their gradients, or is a network of its own
    (`NetworkConfig.critic`):

    - ``shared``: the output of the actor's LSTM.
    - ``central``: the same, with features of the global state.
    - ``ippo``: an encoder and an LSTM of its own, on the mech's observation, as in IPPO: de Witt et al., "Is
      independent learning all you need in the StarCraft multi-agent challenge?", 2020.
    - ``mappo``: features of the global state, and of what the mech knows of itself and the objective, as in MAPPO: Yu
      et al., "The surprising effectiveness of PPO in cooperative multi-agent games", 2022. It has no memory.

    For a critic that sees the global state observations are a dict ``{"observation": (rows, D), "state": (rows, S)}``,
    or have a state for several rows and ``"team"``, see `TEAM`.

    The value head starts at zero. The approach reward is about 0.01 a decision, far less than the noise of a critic
    with random weights, so the actor would learn nothing until the critic has been fitted.

    Parameters
    ----------
    observation_space, action_space
        The spaces of a mech; for a critic that sees the global state the observation space is a Dict of
        ``observation`` and ``state``.
    lr_schedule
        Learning rate as a function of the remaining share of the run.
    network
        Shape of the network.
    use_sde
        Must be False; stable-baselines3 passes it to every policy.
    """

    action_limits: Tensor
    can_be_dense = can_be_recorded = True

    def __init__(
        self,
        observation_space: spaces.Space,  # type: ignore[type-arg]
        action_space: spaces.Box,
        lr_schedule: Any,
        network: NetworkConfig | None = None,
        use_sde: bool = False,
    ) -> None:
        self.network = network or NetworkConfig()
        self._blocks_off = self.network.blocks_off
        self._flat_space = flat_space(observation_space, action_space, self.network)
        own_critic = self.network.critic == "ippo"
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch=[self.network.head],
            activation_fn=nn.ReLU,
            use_sde=use_sde,
            lstm_hidden_size=self.network.width,
            shared_lstm=not own_critic,
            enable_critic_lstm=own_critic,
            optimizer_kwargs={"eps": 1e-5, "fused": True},  # SB3's default eps; fused takes a third of the time
        )
        for lstm in (self.lstm_actor, self.lstm_critic):
            if lstm is not None:
                orthogonal_lstm(lstm)

    def make_features_extractor(self) -> StreamEncoder | FlatEncoder:
        """Create the encoder of a mech's flat observation; stable-baselines3 calls this."""
        network = self.network
        if network.encoder == "flat":
            return FlatEncoder(self._flat_space, network.width)
        return StreamEncoder(self._flat_space, network.width, network.set_width, network.map_channels)

    def _build(self, lr_schedule: Any) -> None:
        """Create all layers except the actor's encoder and the LSTMs; stable-baselines3 calls this."""
        network = self.network
        self._build_mlp_extractor()
        bias = initial_bias()
        if network.encoder == "sets":
            bias = torch.cat(_split_at_targets(bias))
        self.action_net = nn.Linear(network.head, len(bias))
        self.value_net = nn.Linear(network.head, 1)
        self.target_query = nn.Linear(network.head, network.set_width) if network.encoder == "sets" else None
        self.register_buffer("action_limits", torch.tensor(action_limits(BattleConfig())))
        self.critic_encoder = self.make_features_extractor() if network.critic == "ippo" else None
        self.battle_encoder = BattleEncoder(network.width, network.set_width) if network.sees_state else None
        self.own_features = nn.Linear(_OWN, network.width) if network.critic == "mappo" else None
        self.shares_states = self.battle_encoder is not None
        orthogonal(self.mlp_extractor)
        orthogonal(self.action_net, 0.01)
        with torch.no_grad():
            self.action_net.bias.copy_(bias)
            nn.init.zeros_(self.value_net.weight)
            nn.init.zeros_(self.value_net.bias)
        if self.target_query is not None:
            orthogonal(self.target_query, 0.01)
        if self.own_features is not None:
            orthogonal(self.own_features)

    def forward(
        self, obs: Observations, lstm_states: RNNStates, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, RNNStates]:
        """Choices (rows, NUM_PARTS), values (rows, 1), log-probabilities (rows, blocks) and next recurrent states.

        Choices of dead mechs are neutral, and their log-probabilities zero.
        """
        noise = None if deterministic else self.noise(len(episode_starts))
        return self.decide(obs, lstm_states, episode_starts, noise)

    def noise(self, rows: int) -> Tensor:
        """Uniform numbers (rows, NUM_PARTS): also for dead mechs, or a death would shift other rows' noise."""
        return torch.rand(rows, NUM_PARTS, device=self.device)

    def decide(
        self, obs: Observations, lstm_states: RNNStates, episode_starts: Tensor, noise: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, RNNStates]:
        """The results of `forward`, given uniform numbers (rows, NUM_PARTS); None: the most probable choices."""
        rows, mask = len(episode_starts), self.actor_mask(obs)
        active = None if mask is None or self.dense else mask.nonzero().flatten()
        starts = episode_starts if active is None else Sequences(1, rows, episode_starts, None)
        latent, contacts, actor_states = self._trunk(obs, lstm_states.pi, starts, active)
        values, critic_states = self._critic(obs, latent, lstm_states.vf, starts)
        distribution = self._distribution(obs, latent, contacts, active)
        actions = distribution.mode() if noise is None else distribution.sample(select_rows(noise, active))
        log_probs = distribution.block_log_probs(actions)
        if active is not None:
            actions = neutral_choices(actions.device).repeat(rows, 1).index_copy(0, active, actions)
            log_probs = log_probs.new_zeros(rows, len(BLOCKS)).index_copy(0, active, log_probs)
        elif mask is not None:  # of dead mechs only neutral choices are possible
            log_probs = torch.where(mask.unsqueeze(1), log_probs, 0.0)
        return actions, values, log_probs, RNNStates(actor_states, critic_states or actor_states)

    def evaluate(
        self,
        observations: Observations,
        actions: Tensor,
        states: RNNStates,
        sequences: Tensor | Sequences,
        active: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> ActionEvaluation:
        """Evaluate samples as `SequencePolicy.evaluate` does; `sequences` may also be the tensor of episode starts."""
        latent, contacts, _ = self._trunk(observations, states.pi, sequences, active)
        values, _ = self._critic(observations, latent, states.vf, sequences)
        distribution = self._distribution(observations, latent, contacts, active)
        log_probs = distribution.block_log_probs(select_rows(actions, active))
        losses = None if labels is None else distribution.label_losses(select_rows(labels, active))
        return ActionEvaluation(values, log_probs, distribution.block_entropies(), losses)

    def evaluate_actions(
        self, obs: Observations, actions: Tensor, lstm_states: RNNStates, episode_starts: Tensor | Sequences
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values, log-probabilities and entropies, with the signature of stable-baselines3."""
        evaluation = self.evaluate(obs, actions, lstm_states, episode_starts)
        assert evaluation.entropy is not None
        return evaluation.values, evaluation.log_probs.sum(1), evaluation.entropy.sum(1)

    def predict_values(self, obs: Observations, lstm_states: LstmState, episode_starts: Tensor) -> Tensor:
        """Values (rows, 1), given the critic's recurrent states (the actor's if the critic has no LSTM)."""
        latent = None
        if self.lstm_critic is None and self.own_features is None:
            latent, _, _ = self._trunk(obs, lstm_states, episode_starts)
        return self._critic(obs, latent, lstm_states, episode_starts)[0]

    def get_distribution(
        self, obs: Observations, lstm_states: LstmState, episode_starts: Tensor
    ) -> tuple[ActionDistribution, LstmState]:
        """The distribution of choices, and the actor's next recurrent states."""
        latent, contacts, states = self._trunk(obs, lstm_states, episode_starts)
        return self._distribution(obs, latent, contacts), states

    def _predict(
        self, observation: Observations, lstm_states: LstmState, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, LstmState]:
        distribution, states = self.get_distribution(observation, lstm_states, episode_starts)
        if deterministic:
            return environment_actions(distribution.mode()), states
        return environment_actions(distribution.sample(self.noise(len(episode_starts)))), states

    def recorded_settings(self) -> Hashable:
        """What may change and is no tensor. Kernels that are recorded in a CUDA graph depend on it."""
        return self.encoding_dtype, self._blocks_off

    def raw_action(self) -> tuple[tuple[int, ...], torch.dtype]:
        """Shape and dtype of a row's raw action."""
        return (NUM_PARTS,), torch.int64

    def environment_actions(self, actions: Tensor) -> Tensor:
        """Convert choices (rows, NUM_PARTS) to the environment's actions (rows, ACTION_DIM)."""
        return environment_actions(actions)

    def actor_mask(self, observations: Observations) -> Tensor:
        """(rows,) bool: living mechs."""
        return _living(observations)

    blocks = tuple(block.name for block in BLOCKS)

    def set_battle(self, config: BattleConfig) -> None:
        """Rule out the actions that can have no effect in the battles of a configuration, see `action_masks`.

        Saved weights do not have its `abilities`: call it again after loading them.
        """
        self._blocks_off = self.network.blocks_off | config.abilities.blocks_off
        self.action_limits.copy_(torch.from_numpy(action_limits(config)))

    def set_dense(self, dense: bool) -> None:
        """Set `dense`, and that of the encoders."""
        super().set_dense(dense)
        for module in self.modules():
            if isinstance(module, SetEncoder):
                module.dense = dense

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        """Like stable-baselines3's, but a policy whose critic sees the state also acts on flat observations alone."""
        if isinstance(self.observation_space, spaces.Dict) and not isinstance(observation, dict):
            observation = {"observation": observation}
        return cast("tuple[Any, bool]", super().obs_to_tensor(observation))

    def critic_parameters(self) -> list[nn.Parameter]:
        """The parameters that only the critic uses."""
        own = [each for each in (self.critic_encoder, self.battle_encoder, self.own_features) if each is not None]
        return [*super().critic_parameters(), *(parameter for module in own for parameter in module.parameters())]

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.encoding_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.encoding_dtype)

    def _trunk(
        self, observations: Observations, states: LstmState, starts: Tensor | Sequences, active: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, LstmState]:
        """Encoder and LSTM: the latent features of the heads (rows, width), contact embeddings, and the next states.

        The contacts are those of the rows `active`, (n,) int64, or of all; None with a flat encoder.
        """
        flat, contacts = _flat_part(observations), None
        with self._autocast():
            if self.target_query is None:
                features = self.features_extractor(flat)
            elif active is None:
                features, contacts = self.features_extractor.forward_rows(flat)
            else:
                features, contacts = self.features_extractor.forward_active(flat, active)
        features, contacts = _to_float32(features), None if contacts is None else _to_float32(contacts)
        output, states = self._run_lstm(features, states, starts, self.lstm_actor, _living(observations))
        return output + features, contacts, states

    def _run_lstm(
        self, features: Tensor, states: LstmState, starts: Tensor | Sequences, lstm: nn.LSTM, living: Tensor
    ) -> tuple[Tensor, LstmState]:
        """The LSTM's outputs (rows, units), zero for dead mechs, and its next states. Dense: see `run_dense`.

        Mechs stay dead until their episode ends, so their recurrent states are never used again. A policy without
        memory starts from zeros at every row.
        """
        if self.dense and (isinstance(starts, Sequences) or len(starts) == states[0].shape[1]):
            begins = starts.starts if isinstance(starts, Sequences) else starts.view(1, -1)
            return run_dense(features, states, begins, lstm, living, self.network.memory)
        if not self.network.memory:
            zeros = states[0].new_zeros(*states[0].shape[:-2], len(features), states[0].shape[-1])
            output, _ = self._process_sequence(features, (zeros, zeros), features.new_zeros(len(features)), lstm)
            forgotten = torch.zeros_like(states[0]), torch.zeros_like(states[1])
            return torch.where(living.unsqueeze(1), output, 0.0), forgotten
        if not isinstance(starts, Sequences):
            output, after = self._process_sequence(features, states, starts, lstm)
            return torch.where(living.unsqueeze(1), output, 0.0), after
        samples = living.nonzero().flatten()
        sequences, kept = starts.select(samples)
        before = states[0].index_select(1, kept), states[1].index_select(1, kept)
        output, (hidden, cell) = self._process_sequence(select_rows(features, samples), before, sequences, lstm)
        outputs = features.new_zeros(len(features), output.shape[1]).index_copy(0, samples, output)
        empty = torch.zeros_like(states[0])
        return outputs, (empty.index_copy(1, kept, hidden), empty.index_copy(1, kept, cell))

    def _distribution(
        self, observations: Observations, latent: Tensor, contacts: Tensor | None, active: Tensor | None = None
    ) -> ActionDistribution:
        """The distribution of choices of the rows `active`, (n,) int64, or of all.

        `contacts` are the embeddings from `_trunk`. A target's logit is their scaled dot product with a query.
        """
        head = self.mlp_extractor.forward_actor(select_rows(latent, active))
        logits = self.action_net(head)
        if contacts is not None and self.target_query is not None:
            # for tensors this small a batched matrix product takes several times as long
            products = contacts * self.target_query(head).unsqueeze(1)
            scores = products.sum(2) / math.sqrt(contacts.shape[-1])
            before, after = _split_at_targets(logits)
            logits = torch.cat([before, scores, after], 1)
        masks = action_masks(_flat_part(observations), self.action_limits, off=self._blocks_off)
        return ActionDistribution(logits, select_rows(masks, active))

    def _critic(
        self, observations: Observations, latent: Tensor | None, states: LstmState, starts: Tensor | Sequences
    ) -> tuple[Tensor, LstmState | None]:
        """Values (rows, 1), and the critic's next recurrent states if it has an LSTM."""
        next_states = None
        if self.lstm_critic is not None:
            assert self.critic_encoder is not None
            with self._autocast():
                features = self.critic_encoder(_flat_part(observations))
            features = _to_float32(features)
            output, next_states = self._run_lstm(features, states, starts, self.lstm_critic, _living(observations))
            latent = output + features
        elif self.own_features is not None:
            latent = self.own_features(_flat_part(observations)[:, :_OWN])
        assert latent is not None
        if self.battle_encoder is not None:
            parts = cast("dict[str, Tensor]", observations)
            with self._autocast():
                battle = _to_float32(self.battle_encoder(parts[STATE]))
            latent = latent + (battle.index_select(0, parts[TEAM]) if TEAM in parts else battle)
        return self.value_net(self.mlp_extractor.forward_critic(latent)), next_states


def _to_float32(encoded: Tensor) -> Tensor:
    """Convert bfloat16 features to float32: rounding in the LSTM and heads would corrupt probability ratios."""
    return encoded.float() if encoded.dtype == torch.bfloat16 else encoded


def _flat_part(observations: Observations) -> Tensor:
    return observations["observation"] if isinstance(observations, dict) else observations


def _living(observations: Observations) -> Tensor:
    return _flat_part(observations)[:, _ALIVE] > 0.5


def _split_at_targets(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The logits (..., L) before and after those of the targets.

    They may contain these, or leave them out as the output layer of a set encoder's policy does.
    """
    after = logits.shape[-1] - (CHOICES - TARGET_LOGITS.stop)
    return logits[..., : TARGET_LOGITS.start], logits[..., after:]
