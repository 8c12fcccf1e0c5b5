"""The recurrent policy of battles: encoders of the observation's streams, an LSTM, and two heads."""

from __future__ import annotations

import contextlib
import math
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor, nn

from echelon_env.layout.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.layout.observations import (
    OBSERVATION_DIM,
    STREAMS,
    Self,
    class_columns,
    observation_bounds,
    state_streams,
)
from echelon_train.config.train import NetworkConfig
from echelon_train.policy.distributions import (
    PARAMETERS,
    RAW_DIM,
    TARGET_LOGITS,
    HybridDistribution,
    action_masks,
    environment_actions,
    parameter_bias,
)
from echelon_train.policy.encoders import BattleEncoder, FlatEncoder, StreamEncoder, leading
from echelon_train.policy.initial_weights import orthogonal, orthogonal_lstm
from echelon_train.policy.observation_normalizer import ObservationNormalizer
from echelon_train.policy.sequences import ActionEvaluation, LstmState, Observations, SequencePolicy, Sequences
from echelon_train.threads import torch_threads

_ALIVE = STREAMS["self"].start + Self.ALIVE
_CLASSES = class_columns(Self)  # of the flat vector, which begins with the stream self
_PREDICTED = slice(STREAMS["self"].start, STREAMS["objective"].stop)
"""What the auxiliary loss is about: the mech itself and its objective."""
_PREDICTED_WIDTH = _PREDICTED.stop - _PREDICTED.start


def observation_space() -> spaces.Box:
    """The space of a mech's flat observation."""
    low, high = observation_bounds()
    return spaces.Box(low, high, dtype=np.float32)


def action_space() -> spaces.Box:
    """The space of a mech's action."""
    return spaces.Box(ACTION_LOW, ACTION_HIGH, (ACTION_DIM,), np.float32)


class BattlePolicy(SequencePolicy):
    """One policy for every mech: what it is and carries is in its observation.

    Features are encoded from the observation, go through an LSTM and are added to its output: so the heads see the
    observation from the first update on, past gates that have yet to open. Raw actions are those of
    `HybridDistribution`. The critic shares the actor's features and LSTM and their gradients, or has its own
    (`NetworkConfig.critic`); a central one also gets the global state, in observations like
    ``{"observation": (rows, D), "state": (rows, S)}``. The value head starts at zero: the approach reward is about 0.01
    a decision, far below what a critic with random weights fluctuates by from one decision to the next, and nothing
    would be learned until it has been fitted.

    Parameters
    ----------
    observation_space, action_space
        Those of a mech; with a central critic a Dict.
    lr_schedule
        Learning rate by the share of the run that is left.
    network
        Shape of the network.
    use_sde
        Only False is possible; stable-baselines3 says so to every policy.
    """

    def __init__(
        self,
        observation_space: spaces.Space,  # type: ignore[type-arg]
        action_space: spaces.Box,
        lr_schedule: Any,
        network: NetworkConfig | None = None,
        use_sde: bool = False,
    ) -> None:
        self.network = network or NetworkConfig()
        self._flat_space = _flat_space(observation_space, action_space, self.network)
        own_critic = self.network.critic != "shared"
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
            optimizer_kwargs={"eps": 1e-5, "fused": True},  # stable-baselines3's, but a third of the time
        )
        for lstm in (self.lstm_actor, self.lstm_critic):
            if lstm is not None:
                orthogonal_lstm(lstm)

    def make_features_extractor(self) -> StreamEncoder | FlatEncoder:
        """The encoder of a mech's flat observation; stable-baselines3 calls this."""
        network = self.network
        if network.encoder == "flat":
            return FlatEncoder(self._flat_space, network.width)
        return StreamEncoder(self._flat_space, network.width, network.set_width, network.map_channels)

    def _build(self, lr_schedule: Any) -> None:
        """Make everything but the encoder of the actor and the LSTMs; stable-baselines3 calls this."""
        network = self.network
        self._build_mlp_extractor()
        bias = parameter_bias(network.initial_std, network.min_std, network.max_std)
        if network.encoder == "sets":
            bias = torch.cat(_around_targets(bias))
        self.action_net = nn.Linear(network.head, len(bias))
        self.value_net = nn.Linear(network.head, 1)
        self.target_query = nn.Linear(network.head, network.set_width) if network.encoder == "sets" else None
        self.observation_normalizer = ObservationNormalizer() if network.normalize_observations else None
        self.critic_encoder = self.make_features_extractor() if network.critic != "shared" else None
        self.battle_encoder = (
            BattleEncoder(network.width, network.set_width, network.map_channels)
            if network.critic == "central"
            else None
        )
        self.auxiliary_net = nn.Linear(network.width + ACTION_DIM, _PREDICTED_WIDTH) if network.auxiliary else None
        for layer in self.mlp_extractor.modules():
            if isinstance(layer, nn.Linear):
                orthogonal(layer, math.sqrt(2.0))
        orthogonal(self.action_net, 0.01)
        with torch.no_grad():
            self.action_net.bias.copy_(bias)
            nn.init.zeros_(self.value_net.weight)
            nn.init.zeros_(self.value_net.bias)
        for module, gain in ((self.target_query, 0.01), (self.auxiliary_net, 1.0)):
            if module is not None:
                orthogonal(module, gain)

    def forward(
        self, obs: Observations, lstm_states: RNNStates, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, RNNStates]:
        """Act: raw actions (rows, RAW_DIM), values (rows, 1), log-probabilities (rows,) and the next states."""
        mask = self.actor_mask(obs)
        active = None if mask is None else mask.nonzero().flatten()
        starts = episode_starts if active is None else Sequences(1, len(episode_starts), episode_starts, None)
        latent, rows, actor_states = self._trunk(obs, lstm_states.pi, starts, active)
        values, critic_states = self._critic(obs, latent, lstm_states.vf, starts)
        distribution = self._distribution(obs, latent, rows, active)
        if deterministic:
            actions = distribution.mode()
        else:
            noise = torch.randn(len(latent), RAW_DIM, device=latent.device)  # the dead too, whoever they are
            actions = distribution.sample(_taken(noise, active))
        log_probs = distribution.log_prob(actions)
        if active is not None:
            actions = actions.new_zeros(len(latent), RAW_DIM).index_copy(0, active, actions)
            log_probs = log_probs.new_zeros(len(latent)).index_copy(0, active, log_probs)
        return actions, values, log_probs, RNNStates(actor_states, critic_states or actor_states)

    def evaluate(
        self,
        observations: Observations,
        actions: Tensor,
        states: RNNStates,
        sequences: Tensor | Sequences,
        active: Tensor | None = None,
    ) -> ActionEvaluation:
        """Evaluate samples, see `SequencePolicy.evaluate`; sequences may also be given by their starts."""
        latent, rows, _ = self._trunk(observations, states.pi, sequences, active)
        values, _ = self._critic(observations, latent, states.vf, sequences)
        distribution = self._distribution(observations, latent, rows, active)
        return ActionEvaluation(values, distribution.log_prob(_taken(actions, active)), distribution.entropy(), latent)

    def evaluate_actions(
        self, obs: Observations, actions: Tensor, lstm_states: RNNStates, episode_starts: Tensor | Sequences
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values, log-probabilities and entropies, as stable-baselines3 calls it."""
        values, log_probs, entropy, _ = self.evaluate(obs, actions, lstm_states, episode_starts)
        return values, log_probs, entropy

    def predict_values(self, obs: Observations, lstm_states: LstmState, episode_starts: Tensor) -> Tensor:
        """Values (rows, 1), given the critic's states, which are the actor's if the critic has no LSTM."""
        latent = None
        if self.lstm_critic is None:
            latent, _, _ = self._trunk(obs, lstm_states, episode_starts)
        return self._critic(obs, latent, lstm_states, episode_starts)[0]

    def get_distribution(
        self, obs: Observations, lstm_states: LstmState, episode_starts: Tensor
    ) -> tuple[HybridDistribution, LstmState]:
        """The distribution of raw actions, and the actor's next states."""
        latent, rows, states = self._trunk(obs, lstm_states, episode_starts)
        return self._distribution(obs, latent, rows), states

    def _predict(
        self, observation: Observations, lstm_states: LstmState, episode_starts: Tensor, deterministic: bool = False
    ) -> tuple[Tensor, LstmState]:
        distribution, states = self.get_distribution(observation, lstm_states, episode_starts)
        count = len(episode_starts)
        raw = (
            distribution.mode()
            if deterministic
            else distribution.sample(torch.randn(count, RAW_DIM, device=self.device))
        )
        return environment_actions(raw), states

    def auxiliary_errors(
        self, evaluation: ActionEvaluation, actions: Tensor, observations: Observations, sequences: Sequences
    ) -> Tensor:
        """(S,): mean squared error of the predicted next observation of the mech itself and its objective."""
        if self.auxiliary_net is None:
            return super().auxiliary_errors(evaluation, actions, observations, sequences)
        assert evaluation.latent is not None
        following, there_is_one = sequences.following(len(actions), actions.device)
        predicted = self.auxiliary_net(torch.cat([evaluation.latent, environment_actions(actions)], 1))
        errors = predicted - self._flat(observations)[:, _PREDICTED][following]
        return torch.where(there_is_one, errors.square().mean(1), 0.0)

    def raw_action(self) -> tuple[tuple[int, ...], torch.dtype]:
        """Shape and dtype of a row's raw action."""
        return (RAW_DIM,), torch.float32

    def environment_actions(self, actions: Tensor) -> Tensor:
        """Actions (rows, ACTION_DIM) for raw ones (rows, RAW_DIM)."""
        return environment_actions(actions)

    def actor_mask(self, observations: Observations) -> Tensor:
        """(rows,) bool: the mechs that are alive."""
        return _living(observations)

    def groups(self, observations: Observations) -> Tensor:
        """(rows,) int64: the mechs' classes."""
        return _flat_part(observations)[:, _CLASSES].argmax(1)

    num_groups = _CLASSES.stop - _CLASSES.start

    def observe(self, observations: Observations, actor_mask: Tensor) -> None:
        """Update the moments that observations (rows, D) are normalised by, if they are, from active (rows,) mechs."""
        if self.observation_normalizer is not None:
            self.observation_normalizer.update(_flat_part(observations), actor_mask)

    def diagnostics(self, observations: Observations, states: RNNStates, sequences: Sequences) -> dict[str, float]:
        """``entropy_<block>``: the mean entropy of each block of the action, in nats, of the mechs that are alive."""
        living = _living(observations).nonzero().flatten()
        if not len(living):
            return {}
        latent, rows, _ = self._trunk(observations, states.pi, sequences, living)
        blocks = self._distribution(observations, latent, rows, living).block_entropies()
        means = torch.stack(list(blocks.values())).mean(1).tolist()
        return {f"entropy_{name}": mean for name, mean in zip(blocks, means, strict=True)}

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        """As stable-baselines3's; to act, flat observations are enough for a central critic's policy, too."""
        if isinstance(self.observation_space, spaces.Dict) and not isinstance(observation, dict):
            observation = {"observation": observation}
        return cast("tuple[Any, bool]", super().obs_to_tensor(observation))

    def critic_parameters(self) -> list[nn.Parameter]:
        """The parameters that the actor has no part in."""
        own = [each for each in (self.critic_encoder, self.battle_encoder) if each is not None]
        return [*super().critic_parameters(), *(parameter for module in own for parameter in module.parameters())]

    def _flat(self, observations: Observations) -> Tensor:
        flat = _flat_part(observations)
        return flat if self.observation_normalizer is None else self.observation_normalizer(flat)

    def _encoding(self) -> contextlib.AbstractContextManager[Any]:
        if self.encoding_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.encoding_dtype)

    def _trunk(
        self, observations: Observations, states: LstmState, starts: Tensor | Sequences, active: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, LstmState]:
        """What the heads are given, (rows, width), the contacts' embeddings if there are any, and the next states.

        The contacts are those of the mechs whose numbers are in `active`, (n,) int64, or of all.
        """
        flat, rows = self._flat(observations), None
        with self._encoding():
            if self.target_query is None:
                features = self.features_extractor(flat)
            elif active is None:
                features, rows = self.features_extractor.forward_rows(flat)
            else:
                features, rows = self.features_extractor.forward_active(flat, active)
        features, rows = _exact(features), None if rows is None else _exact(rows)
        output, states = self._remember(features, states, starts, self.lstm_actor, _living(observations))
        return output + features, rows, states

    def _remember(
        self, features: Tensor, states: LstmState, starts: Tensor | Sequences, lstm: nn.LSTM, living: Tensor
    ) -> tuple[Tensor, LstmState]:
        """The LSTM's outputs (rows, units), which are zero for the dead, and its next states.

        The dead stay dead until their episode ends, so the LSTM's outputs for them are never used.
        """
        if not isinstance(starts, Sequences):
            output, after = self._process_sequence(features, states, starts, lstm)
            return torch.where(living.unsqueeze(1), output, 0.0), after
        samples = living.nonzero().flatten()
        sequences, numbers = starts.only(samples)
        before = states[0].index_select(1, numbers), states[1].index_select(1, numbers)
        output, (hidden, cell) = self._process_sequence(leading(features, samples), before, sequences, lstm)
        outputs = features.new_zeros(len(features), output.shape[1]).index_copy(0, samples, output)
        empty = torch.zeros_like(states[0])
        return outputs, (empty.index_copy(1, numbers, hidden), empty.index_copy(1, numbers, cell))

    def _distribution(
        self, observations: Observations, latent: Tensor, rows: Tensor | None, active: Tensor | None = None
    ) -> HybridDistribution:
        """The distribution of raw actions of the mechs whose numbers are in `active`, (n,) int64, or of all.

        `rows` are their contacts, see `_trunk`.
        """
        head = self.mlp_extractor.forward_actor(_taken(latent, active))
        parameters = self.action_net(head)
        if rows is not None and self.target_query is not None:
            # For products as small as these a batched matrix product takes several times as long.
            products = rows * self.target_query(head).unsqueeze(1)
            scores = products.sum(2) / math.sqrt(rows.shape[-1])
            before, after = _around_targets(parameters)
            parameters = torch.cat([before, scores, after], 1)
        masks = _taken(action_masks(_flat_part(observations)), active)
        return HybridDistribution(parameters, masks, self.network.min_std, self.network.max_std)

    def _critic(
        self, observations: Observations, latent: Tensor | None, states: LstmState, starts: Tensor | Sequences
    ) -> tuple[Tensor, LstmState | None]:
        """Values (rows, 1), and the critic's next states if it has any."""
        next_states = None
        if self.lstm_critic is not None:
            assert self.critic_encoder is not None
            with self._encoding():
                features = self.critic_encoder(self._flat(observations))
                if self.battle_encoder is not None:
                    features = features + self.battle_encoder(cast("dict[str, Tensor]", observations)["state"])
            features = _exact(features)
            living = _living(observations)
            output, next_states = self._remember(features, states, starts, self.lstm_critic, living)
            latent = output + features
        return self.value_net(self.mlp_extractor.forward_critic(latent)), next_states


def build_policy(network: NetworkConfig, seed: int | None = None) -> BattlePolicy:
    """A policy with random weights on the CPU; the same seed gives the same weights.

    The weights of a central critic fit the global state of any number of mechs.
    """
    space: spaces.Space[Any] = observation_space()
    if network.critic == "central":
        width = state_streams(2)["battle_map"].stop
        space = spaces.Dict({"observation": space, "state": spaces.Box(-np.inf, np.inf, (width,), np.float32)})
    # one thread: the last bits of orthogonal weights hang on how many there are
    with torch.random.fork_rng(devices=[]), torch_threads(1):
        if seed is not None:
            torch.manual_seed(seed % 2**63)
        return BattlePolicy(space, action_space(), lambda _: 0.0, network)


def _flat_space(observations: Any, actions: Any, network: NetworkConfig) -> spaces.Box:
    """The space of a mech's flat observation. Raises ValueError for spaces that are not those of a mech."""
    central = network.critic == "central"
    if central != isinstance(observations, spaces.Dict) or (
        central and set(observations.keys()) != {"observation", "state"}
    ):
        expected = "a Dict of 'observation' and 'state'" if central else "a Box"
        raise ValueError(f"a {network.critic} critic needs an observation space that is {expected}, got {observations}")
    flat = observations["observation"] if central else observations
    for name, space, shape in (("observation", flat, (OBSERVATION_DIM,)), ("action", actions, (ACTION_DIM,))):
        if not isinstance(space, spaces.Box) or space.shape != shape:
            raise ValueError(f"{name} space: expected a mech's, a Box of {shape}, got {space}")
    return cast("spaces.Box", flat)


def _exact(encoded: Tensor) -> Tensor:
    """What was encoded in bfloat16 as float32, because its rounding in what follows would spoil probability ratios."""
    return encoded.float() if encoded.dtype == torch.bfloat16 else encoded


def _flat_part(observations: Observations) -> Tensor:
    return observations["observation"] if isinstance(observations, dict) else observations


def _living(observations: Observations) -> Tensor:
    return _flat_part(observations)[:, _ALIVE] > 0.5


def _taken(tensor: Tensor, rows: Tensor | None) -> Tensor:
    return tensor if rows is None else leading(tensor, rows)


def _around_targets(parameters: Tensor) -> tuple[Tensor, Tensor]:
    """Those before and after the logits of the contact rows as targets, which with sets are of what is in them alone.

    It does not matter whether these logits are among the parameters (..., P).
    """
    after = parameters.shape[-1] - (PARAMETERS - TARGET_LOGITS.stop)
    return parameters[..., : TARGET_LOGITS.start], parameters[..., after:]
