"""Recurrent PPO: sb3-contrib's RecurrentPPO with its own rollout collection and training."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import FloatSchedule
from torch import Tensor

from echelon_env.config.schema import ConfigError, build
from echelon_train.config.ppo import CompileMode, PPOConfig
from echelon_train.config.schedules import Schedule
from echelon_train.errors import NonFiniteError
from echelon_train.policy import BattlePolicy
from echelon_train.policy.observation_normalizer import ObservationNormalizer
from echelon_train.policy.sequences import (
    CnnLstmPolicy,
    MlpLstmPolicy,
    MultiInputLstmPolicy,
    SequencePolicy,
)
from echelon_train.ppo import distributed
from echelon_train.ppo.buffer import write_batch
from echelon_train.ppo.collector import ChunkCollector
from echelon_train.ppo.compiling import compiled
from echelon_train.ppo.cuda_graphs import Graphed
from echelon_train.ppo.losses import Coefficients, Losses, add_gradients, recurrent_states, state_tensors
from echelon_train.ppo.normalize import ReturnNormalizer, normalize_advantages
from echelon_train.ppo.saving import SafetensorsSaving, unwrap_schedule
from echelon_train.ppo.teacher import Teacher
from echelon_train.ppo.update_log import UpdateLog, explained_variance
from echelon_train.tensor_files import weights_of

MAX_SKIPPED = 5
"""Training stops after this many successive minibatches whose gradient is not finite."""

DIAGNOSTIC_SAMPLES = 256
"""Samples on which the policy's diagnostics are computed; they cost an additional forward pass."""

_SHARED = inspect.signature(RecurrentPPO.__init__).parameters


class EchelonRecurrentPPO(SafetensorsSaving, ChunkCollector):
    """Recurrent PPO that trains on chunks of fixed length; one call of the LSTM processes a whole minibatch.

    It takes any VecEnv and has the interface of stable-baselines3's algorithms. An environment class may have a
    property `state_rows`: how many rows in succession have the same ``state`` in their observations. Parameters of
    RecurrentPPO keep their meaning, order and default, except for the differences below. All other settings of
    `PPOConfig` (`settings_class`) are keyword arguments with the same names, ranges and defaults. Each becomes an
    attribute of the same name.

    Parameters
    ----------
    policy
        A `SequencePolicy` class, or its name: ``"MlpLstmPolicy"``, ``"CnnLstmPolicy"``, ``"MultiInputLstmPolicy"`` or
        ``"BattlePolicy"``.
    n_steps, batch_size
        Multiples of `chunk`. A minibatch has at most as many samples as a rollout.
    normalize_advantage
        True: over the active rows' samples of a whole rollout, not of a minibatch. ``"by_class"``: within each of the
        policy's groups; in battles these are the mech classes.
    vf_coef
        With `normalize_returns` the critic's loss is in units of the returns' variance.
    clip_range_vf, use_sde
        Must be None and False: neither is supported.
    learning_rate, clip_range, ent_coef, motion_ent_scale, gamma
        A number, a `Schedule`, or a function of the remaining share of the run.
    target_kl
        None or 0: no early stopping of updates.
    chunk
        Steps of a chunk. The LSTM is trained on a chunk from the recurrent state stored in the rollout.
    burn_in
        First steps of a chunk that only warm up the LSTM, unless an episode starts there. They enter no loss, but
        gradients of later losses flow back through them.
    normalize_returns, return_std
        Whether the critic predicts returns normalised by running moments (`ReturnNormalizer`), and the initial estimate
        of their standard deviation.
    deterministic
        On CUDA: reproducible results, but slower. Policies then encode in float32 instead of bfloat16, and no matrix
        product uses TF32.
    dense
        Whether the policy computes all rows and masks the results, see `SequencePolicy.dense`. None: on CUDA, if it
        can. The results are equal but for rounding.
    compile_mode
        How a dense policy's decisions and losses are computed, see `CompileMode`. The losses of a minibatch in several
        parts are not recorded.

    Raises
    ------
    ConfigError
        For a setting that is out of range or does not fit the others, with its name.
    ValueError
        For a policy that is not a `SequencePolicy`, for `use_sde` and `clip_range_vf`, and for `dense` or a
        `compile_mode` that needs it with a policy that cannot be dense.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpLstmPolicy": MlpLstmPolicy,
        "CnnLstmPolicy": CnnLstmPolicy,
        "MultiInputLstmPolicy": MultiInputLstmPolicy,
        "BattlePolicy": BattlePolicy,
    }
    settings_class: ClassVar[type[PPOConfig]] = PPOConfig
    """The settings' dataclass. A subclass of the algorithm with more settings sets a subclass of `PPOConfig`."""

    def __init__(
        self,
        policy: str | type[SequencePolicy],
        env: Any,
        *args: Any,
        deterministic: bool = False,
        dense: bool | None = None,
        compile_mode: CompileMode = "auto",
        _init_setup_model: bool = True,
        **kwargs: Any,
    ) -> None:
        fields = [field for field in dataclasses.fields(self.settings_class) if field.name not in _SHARED]
        settings = {field.name: kwargs.pop(field.name, field.default) for field in fields}
        super().__init__(policy, env, *args, _init_setup_model=False, **kwargs)
        for name, value in settings.items():
            setattr(self, name, value)
        for name in self.settings_class.schedules():
            if name != "learning_rate":
                setattr(self, name, FloatSchedule(getattr(self, name)))
        self.deterministic = deterministic
        self.dense, self.compile_mode = dense, compile_mode
        self.skipped_minibatches = 0
        """Number of minibatches so far whose gradient was not finite."""
        self.skipped_in_a_row = 0
        """Number of such minibatches since the last one whose gradient was finite."""
        self.parts = 1
        """Parts of a minibatch that fit the device's memory; it is doubled when they do not."""
        self.teacher: Teacher | None = None
        """Source of the labels of the kickstart loss, see `set_teacher`."""
        self.before_rollout: Callable[[], object] = lambda: None
        """Called before every rollout; any previous rollout has then been trained on."""
        self.time_remaining: Callable[[], float] = lambda: 1.0
        """Share of the run's time or battles that is left. Schedules follow this or the samples' share, if smaller."""
        self.stopping = False
        """Whether training ends before the next rollout."""
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        self._check_settings(self.n_envs)
        self._setup_lr_schedule()
        if self.seed is not None:
            self.set_random_seed(distributed.rank_seed(self.seed))
        elif distributed.rank():
            torch.seed()  # by default torch has the same seed in every process
        if self.device.type == "cuda":
            _set_up_cuda(self.deterministic)
        self.policy = self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        ).to(self.device)
        if not isinstance(self.policy, SequencePolicy):
            raise ValueError(f"policy: expected a SequencePolicy, got {type(self.policy).__name__}")
        if self.device.type == "cuda" and not self.deterministic:
            self.policy.encoding_dtype = torch.bfloat16
        dense = self.dense
        if dense is None:
            dense = self.policy.can_be_dense and (self.device.type == "cuda" or self.compile_mode == "graphs")
        self.policy.set_dense(dense)
        self._add_gradients = compiled(self.policy, self.compile_mode)
        if self.normalize_returns:
            self.policy.return_normalizer = ReturnNormalizer(self.return_std).to(self.device)
        distributed.broadcast_tensors([*self.policy.parameters(), *self.policy.buffers()])
        if self.env is not None:  # without an environment the model only predicts
            self._allocate()

    def _check_settings(self, num_rows: int) -> None:
        """Raise ConfigError for a setting that is out of range or does not fit the others or the number of rows."""
        if self.use_sde:
            raise ValueError("use_sde: expected False: state-dependent exploration is not supported")
        if self.clip_range_vf is not None:
            raise ValueError(f"clip_range_vf: expected None: values are not clipped, got {self.clip_range_vf!r}")
        settings = {each.name: getattr(self, each.name) for each in dataclasses.fields(self.settings_class)}
        for name in self.settings_class.schedules():
            settings[name] = unwrap_schedule(settings[name])
            if callable(settings[name]) and not isinstance(settings[name], Schedule):
                del settings[name]  # the range of an arbitrary function is unknown
        build(self.settings_class, {**settings, "target_kl": self.target_kl or 0.0}, "ppo.")
        samples = self.n_steps * num_rows
        if self.batch_size > samples:
            raise ConfigError(
                f"ppo.batch_size: expected at most the {samples} samples of a rollout, got {self.batch_size}",
                "ppo.batch_size",
            )

    def reinitialize(self, weights: Mapping[str, Tensor]) -> None:
        """Set `weights`, by the names of `weights_of`; reset the optimizer and the LSTM states.

        The return normaliser is reset, too, unless the weights contain it. Updates are counted from 0, so that
        `critic_warmup` applies as after a start. The environment, the other counters and the schedules continue.
        """
        self._n_updates = 0
        if self.normalize_returns:
            self.policy.return_normalizer = ReturnNormalizer(self.return_std).to(self.device)
        for name, tensor in weights_of(self.policy).items():
            if name in weights:
                tensor.copy_(weights[name])
        self.policy.optimizer.state.clear()
        for state in state_tensors(self._last_lstm_states, self._critic_lstm):
            state.zero_()

    def train(self) -> None:
        """Update the policy from the rollout in the buffer.

        Metrics of minibatches (losses, ``entropy``, ``approx_kl``, ``clip_fraction``, ``grad_norm``) are averages over
        all processes. Metrics of the rollout (``explained_variance``, standard deviations, ``active_share``, the
        policy's diagnostics) cover this process only.
        """
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        coefficients = Coefficients(*map(self._current, Coefficients._fields))
        warming_up = self._n_updates < self.critic_warmup * self.n_epochs
        if warming_up:
            coefficients = coefficients._replace(policy_coef=0.0, ent_coef=0.0, kickstart_coef=0.0)
        buffer = self.rollout_buffer
        loss_mask = buffer.loss_mask()
        self._normalize_returns(loss_mask)
        explained = explained_variance(buffer.values[loss_mask], buffer.returns[loss_mask])
        log, stopped = UpdateLog(self.policy.blocks), False
        advantages = self._normalized_advantages(loss_mask)
        for _ in range(self.n_epochs):
            for chunks in buffer.minibatches(self.batch_size // self.chunk):
                parts = self._gradient(chunks, advantages, loss_mask, coefficients)
                if warming_up:
                    self._keep_policy()
                norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                if not bool(torch.isfinite(norm) & torch.isfinite(parts.total)):
                    self._skip(chunks, advantages, loss_mask)
                    continue
                self.skipped_in_a_row = 0
                log.add(parts, norm)
                if self.target_kl and float(parts.approx_kl) > 1.5 * self.target_kl:
                    stopped = True
                    break
                self.policy.optimizer.step()
            self._n_updates += 1
            if stopped:
                break
        self.policy.optimizer.zero_grad()
        self._observe(warming_up)
        self._record(log, coefficients, explained)

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        super()._update_current_progress_remaining(num_timesteps, total_timesteps)
        self._current_progress_remaining = min(self._current_progress_remaining, self.time_remaining())

    def _current(self, name: str) -> Any:
        """The current value of a setting that may be a schedule."""
        value = getattr(self, name)
        return value(self._current_progress_remaining) if callable(value) else value

    def _gradient(self, chunks: Tensor, advantages: Tensor, loss_mask: Tensor, coefficients: Coefficients) -> Losses:
        """Compute a minibatch's gradient, summed over all processes. Returns the losses over all processes."""
        buffer = self.rollout_buffer
        counts = distributed.all_reduce_sum(buffer.sample_counts(chunks, loss_mask))
        totals = counts.clamp_min(1.0).unbind()
        numbers = None
        while numbers is None:
            parts = min(max(self.accumulate, self.parts), len(chunks))
            try:
                numbers = self._backward(chunks.tensor_split(parts), advantages, loss_mask, coefficients, totals)
            except torch.OutOfMemoryError:
                if parts == len(chunks):
                    raise
                self.parts = 2 * parts
                if isinstance(self._add_gradients, Graphed):
                    self._add_gradients.clear()  # parts are not recorded, and the whole does not fit
            if numbers is None and self.device.type == "cuda":
                torch.cuda.empty_cache()  # the failed attempt's memory is in pieces of other sizes
        return Losses.unpacked(distributed.all_reduce_gradients(self.policy.parameters(), numbers.unbind()))

    def _backward(
        self,
        parts: Sequence[Tensor],
        advantages: Tensor,
        loss_mask: Tensor,
        coefficients: Coefficients,
        totals: tuple[Tensor, ...],
    ) -> Tensor:
        """Compute the gradient of the parts of a minibatch; returns the sum of their losses, packed."""
        self.policy.optimizer.zero_grad()
        compute, results = self._add_gradients, []
        if len(parts) > 1:
            compute = add_gradients  # a CUDA graph would write over the gradients of the part before
        for chunks in parts:
            batch = self.rollout_buffer.batch(chunks, advantages, loss_mask)
            results.append(compute(self.policy, batch, self.policy.return_normalizer, coefficients, *totals))
        return torch.stack(results).sum(0)

    def _keep_policy(self) -> None:
        """Drop the gradients of all parameters that the actor uses: the critic's loss would change a shared trunk."""
        critic = {id(parameter) for parameter in self.policy.critic_parameters()}
        for parameter in self.policy.parameters():
            if id(parameter) not in critic:
                parameter.grad = None

    def _normalize_returns(self, loss_mask: Tensor) -> None:
        normalizer = self.policy.return_normalizer
        if normalizer is None:
            return
        returns = self.rollout_buffer.returns[loss_mask].double()
        sums = torch.stack([returns.new_tensor(float(len(returns))), returns.sum(), (returns**2).sum()])
        count, total, squares = distributed.all_reduce_sum(sums).unbind()
        normalizer.update(total / count, squares / count, self.policy.value_net)

    def _normalized_advantages(self, loss_mask: Tensor) -> Tensor:
        """The advantages (T, N) for the policy's loss, normalised according to `normalize_advantage`."""
        buffer = self.rollout_buffer
        if not self.normalize_advantage:
            return buffer.advantages
        groups = None
        if self.normalize_advantage == "by_class":
            groups = self.policy.groups(buffer.of_rows())
            groups = None if groups is None else groups.view_as(buffer.actor_mask)
        return normalize_advantages(buffer.advantages, buffer.actor_mask & loss_mask, groups, self.policy.num_groups)

    def _skip(self, chunks: Tensor, advantages: Tensor, loss_mask: Tensor) -> None:
        """Skip a minibatch whose gradient is not finite; stop after too many in a row."""
        self.skipped_minibatches += 1
        self.skipped_in_a_row += 1
        self.policy.optimizer.zero_grad()
        if self.skipped_in_a_row < MAX_SKIPPED:
            return
        file = write_batch(self.rollout_buffer.batch(chunks, advantages, loss_mask), self.logger.dir)
        raise NonFiniteError(
            f"the gradients of {self.skipped_in_a_row} minibatches in a row were not finite; the last one is in {file}"
        )

    def _observe(self, warming_up: bool) -> None:
        """Update the policy's running statistics with the active rows of all processes.

        While the critic warms up those that there are do not change, because the policy does not.
        """
        buffer = self.rollout_buffer
        normalizers = [module for module in self.policy.modules() if isinstance(module, ObservationNormalizer)]
        if warming_up and all(bool(module.running.any()) for module in normalizers):
            return
        with distributed.sync_running_stats(normalizers):
            for step in range(0, buffer.num_steps, buffer.chunk):
                part = slice(step, step + buffer.chunk)
                self.policy.observe(buffer.of_rows(part), buffer.actor_mask[part].flatten())

    def _record(self, log: UpdateLog, coefficients: Coefficients, explained: float) -> None:
        buffer, record = self.rollout_buffer, self.logger.record
        for name, number in log.means().items():
            record(f"train/{name}", number)
        record("train/explained_variance", explained)
        for name, tensor in (("advantage", buffer.advantages), ("value", buffer.values), ("reward", buffer.rewards)):
            active = tensor[buffer.actor_mask]
            record(f"train/{name}_std", float(active.std(correction=0)) if len(active) else 0.0)
        for name, number in self._diagnostics().items():
            record(f"train/{name}", number)
        record("train/clip_range", coefficients.clip_range)
        record("train/ent_coef", coefficients.ent_coef)
        record("train/active_share", float(buffer.actor_mask.float().mean()))
        record("train/skipped_minibatches", self.skipped_minibatches)
        if self.parts > self.accumulate:
            record("train/accumulate", self.parts)
        record("train/n_updates", self._n_updates, exclude="tensorboard")

    @torch.no_grad()
    def _diagnostics(self) -> dict[str, float]:
        """The policy's diagnostics on about `DIAGNOSTIC_SAMPLES` samples, evenly spaced in the rollout."""
        buffer = self.rollout_buffer
        count = min(max(1, DIAGNOSTIC_SAMPLES // self.chunk), buffer.num_chunks)
        chunks = torch.linspace(0, buffer.num_chunks - 1, count).long()
        batch = buffer.batch(chunks, buffer.advantages, buffer.loss_mask())
        states = recurrent_states(batch.states)
        numbers: dict[str, float] = self.policy.diagnostics(batch.observations, states, batch.sequences)
        return numbers


def _set_up_cuda(deterministic: bool) -> None:
    """Let CUDA use TF32 and search for the fastest kernels, or compute in float32 with deterministic ones."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not deterministic
    torch.backends.cudnn.benchmark = not deterministic
    torch.backends.cudnn.deterministic = deterministic
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS needs it to be deterministic in LSTMs
        torch.use_deterministic_algorithms(True, warn_only=True)
