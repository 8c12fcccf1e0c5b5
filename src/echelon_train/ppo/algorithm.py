"""Recurrent PPO: sb3-contrib's RecurrentPPO with its own rollout collection and training."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import FloatSchedule, check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from echelon_train.config.ppo import CompileMode, PPOConfig
from echelon_train.errors import NonFiniteError
from echelon_train.policy import BattlePolicy, CnnLstmPolicy, MlpLstmPolicy, MultiInputLstmPolicy, SequencePolicy
from echelon_train.ppo import distributed
from echelon_train.ppo.buffer import ChunkBuffer, write_batch
from echelon_train.ppo.collector import Collector, pin_memory, shared_rows
from echelon_train.ppo.cuda_graphs import is_recorded
from echelon_train.ppo.losses import Coefficients
from echelon_train.ppo.normalize import ReturnNormalizer
from echelon_train.ppo.saving import load_model, save_model
from echelon_train.ppo.settings import check_env, check_settings, set_up_cuda
from echelon_train.ppo.teacher import Teacher
from echelon_train.ppo.update import Update, UpdateSettings
from echelon_train.ppo.update_log import UpdateLog
from echelon_train.tensor_files import weights_of

MAX_SKIPPED = 5
"""Training stops after an update with this many successive minibatches whose gradient is not finite."""

_SHARED = inspect.signature(RecurrentPPO.__init__).parameters


class EchelonRecurrentPPO(RecurrentPPO):  # type: ignore[misc]
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
        Over the active rows' samples of a whole rollout, not of a minibatch.
    vf_coef
        With `normalize_returns` the critic's loss is in units of the returns' variance.
    clip_range_vf, use_sde
        Must be None and False: neither is supported.
    learning_rate, clip_range, ent_coef, gamma
        A number, a `Schedule`, or a function of the remaining share of the run.
    target_kl
        None or 0: no early stopping of updates.
    chunk
        Steps of a chunk. The LSTM is trained on a chunk from the recurrent state stored in the rollout.
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

    collector: Collector
    update: Update
    rollout_buffer: ChunkBuffer
    num_timesteps: int
    _current_progress_remaining: float

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
        self.teacher: Teacher | None = None
        """Source of the labels of the kickstart loss, see `set_teacher`."""
        self.before_rollout: Callable[[], object] = lambda: None
        """Called before every rollout; any previous rollout has then been trained on."""
        self.remaining: Callable[[float], float] = lambda share: share
        """The share of the run that is left, which schedules follow, given that of the samples."""
        self.stopping = False
        """Whether training ends before the next rollout."""
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        check_settings(self, self.n_envs)
        self._setup_lr_schedule()
        if self.seed is not None:
            self.set_random_seed(distributed.rank_seed(self.seed))
        elif distributed.rank():
            torch.seed()  # by default torch has the same seed in every process
        if self.device.type == "cuda":
            set_up_cuda(self.deterministic)
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
        self.recorded = is_recorded(self.policy, self.compile_mode)
        self.update = Update(self.policy, self.recorded, self.accumulate)
        if self.normalize_returns:
            self.policy.return_normalizer = ReturnNormalizer(self.return_std).to(self.device)
        distributed.broadcast_tensors([*self.policy.parameters(), *self.policy.buffers()])
        if self.env is not None:  # without an environment the model only predicts
            self._make_collector()

    def reinitialize(self, weights: Mapping[str, Tensor]) -> None:
        """Set `weights`, by the names of `weights_of`; reset the optimizer and the LSTM states.

        The return normaliser is reset, too, unless the weights contain it. Updates are counted from 0, so that
        `critic_warmup` applies as after a start. The environment, the other counters and the schedules continue.
        """
        self._n_updates = 0
        if self.normalize_returns:
            self.policy.return_normalizer.reset(self.return_std)
        for name, tensor in weights_of(self.policy).items():
            if name in weights:
                tensor.copy_(weights[name])
        self.policy.optimizer.state.clear()
        for state in self.collector.state_tensors():
            state.zero_()

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Like stable-baselines3's; a rollout has a new buffer if there is none for such an environment."""
        check_env(self.policy, env)
        super().set_env(env, force_reset)
        if not hasattr(self, "collector") or self.rollout_buffer.state_rows != shared_rows(self.policy, self.env):
            self._make_collector()
        pin_memory(self.env, self.device)

    def set_teacher(self, teacher: Teacher | None) -> None:
        """Label the observations of later rollouts with a teacher's actions, for the kickstart loss; None: no longer.

        The recurrent states are reset.
        """
        self.teacher = teacher
        self._make_collector()

    def replace_env(self, env: VecEnv) -> None:
        """Reset another environment and continue training in it; weights, optimizer state and counters are kept.

        It may have another number of rows. The old environment is not closed. Raises ValueError, with nothing changed,
        if the environment does not fit the policy or the settings.
        """
        env = self._wrap_env(env, self.verbose)
        check_for_correct_spaces(env, self.observation_space, self.action_space)
        check_settings(self, env.num_envs)
        self.n_envs = env.num_envs  # the policy does not depend on the number of rows
        self.set_env(env)
        self._make_collector()
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
        self.collector.finish(self.current("gamma"), self.gae_lambda)
        callback.on_rollout_end()
        return True

    def _collect(self, callback: BaseCallback) -> bool:
        """Fill the buffer. Returns False if a callback stops training."""
        env, collector = self.env, self.collector
        # a schedule may begin to rise between this and the update
        labelled = self.teacher is not None and bool(self.current("kickstart_coef"))
        collector.begin(self._last_obs, self._last_episode_starts, labelled, self.current("learner_share"))
        for n_steps in range(self.n_steps):
            decision = collector.act(n_steps)
            actions, clipped_actions = decision.actions, decision.played
            new_obs, rewards, dones, infos = env.step(clipped_actions)
            self.num_timesteps += decision.active
            collector.note_players(dones, infos)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            collector.store(n_steps, new_obs, rewards, dones, infos)
            self._last_obs, self._last_episode_starts = new_obs, dones
            ended = np.flatnonzero(dones)
            self._update_info_buffer([infos[row] for row in ended], dones[ended])
        return True

    def train(self) -> None:
        """Update the policy from the rollout in the buffer.

        Metrics of minibatches (losses, ``entropy``, ``approx_kl``, ``clip_fraction``, ``grad_norm``) are averages over
        all processes. Metrics of the rollout (``explained_variance``, standard deviations, ``active_share``) cover this
        process only.
        """
        policy = self.policy
        policy.set_training_mode(True)
        self._update_learning_rate(policy.optimizer)
        coefficients = Coefficients(*map(self.current, Coefficients._fields))
        warming_up = self._n_updates < self.critic_warmup * self.n_epochs
        if warming_up:
            coefficients = coefficients._replace(policy_coef=0.0, ent_coef=0.0, kickstart_coef=0.0)
        settings = UpdateSettings(
            epochs=self.n_epochs,
            chunks=self.batch_size // self.chunk,
            normalize_advantage=self.normalize_advantage,
            critic_only=warming_up,
            max_grad_norm=self.max_grad_norm,
            kl_limit=1.5 * self.target_kl if self.target_kl else math.inf,
        )
        log = self.update.run(self.rollout_buffer, coefficients, settings)
        self._n_updates += log.epochs
        self._count_skipped(log)
        self._record(log)

    def save(
        self,
        path: str | Path,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """Write weights, optimizer state, constructor arguments and counters to one file, atomically.

        ``.safetensors`` is appended to its name if it is missing. `dense` and `compile_mode` are not written: they
        belong to the machine, and are given to `load`. Raises TypeError for a `path` of another type, and for `exclude`
        and `include`, which stable-baselines3's callbacks pass as None; CheckpointError for weights that are not
        finite; and OSError if the file cannot be written.
        """
        save_model(self, path, exclude, include)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: gymnasium.Env[Any, Any] | VecEnv | None = None,
        device: torch.device | str = "auto",
        **kwargs: Any,
    ) -> Self:
        """Create a model from a file written by `save`; training starts with a reset of the environment.

        Parameters
        ----------
        path
            The file, with or without its suffix.
        env
            The environment; None for a model that only predicts.
        device
            The device of the model.
        kwargs
            Constructor arguments that replace those of the file, and `dense` and `compile_mode`. Arguments that a file
            cannot store are required: functions as schedules, custom policy classes, and `policy_kwargs` with classes.

        Raises
        ------
        CheckpointError
            For a file that is missing, damaged or of another format, and for missing arguments, with their names.
        ValueError
            If the spaces of the environment do not match.
        """
        model: Self = load_model(cls, path, env, device, kwargs)
        return model

    def set_parameters(
        self, load_path_or_dict: Any, exact_match: bool = True, device: torch.device | str = "auto"
    ) -> None:
        """Like stable-baselines3's, but from a dict only. Raises TypeError for a path, whose file would be a pickle."""
        if not isinstance(load_path_or_dict, dict):
            raise TypeError(f"set_parameters: expected a dict, got {load_path_or_dict!r}; files are read by load")
        super().set_parameters(load_path_or_dict, exact_match, device)

    def current(self, name: str) -> Any:
        """The current value of a setting that may be a schedule."""
        value = getattr(self, name)
        return value(self._current_progress_remaining) if callable(value) else value

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        super()._update_current_progress_remaining(num_timesteps, total_timesteps)
        self._current_progress_remaining = self.remaining(self._current_progress_remaining)

    def _count_skipped(self, log: UpdateLog) -> None:
        """Count the minibatches that were skipped; raise NonFiniteError for too many in a row."""
        for chunks, kept in zip(log.minibatches, log.finite(), strict=True):
            self.skipped_minibatches += not kept
            self.skipped_in_a_row = 0 if kept else self.skipped_in_a_row + 1
            if self.skipped_in_a_row == MAX_SKIPPED:
                file = write_batch(self.update.batch(chunks), self.logger.dir)
                raise NonFiniteError(
                    f"the gradients of {MAX_SKIPPED} minibatches in a row were not finite; the last one is in {file}"
                )

    def _record(self, log: UpdateLog) -> None:
        numbers = log.metrics() | {"skipped_minibatches": self.skipped_minibatches}
        if hasattr(self.policy, "log_std"):
            numbers["std"] = float(self.policy.log_std.detach().exp().mean())
        if self.update.parts > self.accumulate:
            numbers["accumulate"] = self.update.parts
        for name, number in numbers.items():
            self.logger.record(f"train/{name}", number)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _make_collector(self) -> None:
        """Allocate the recurrent states and the buffer for the environment's rows."""
        check_env(self.policy, self.env)
        pin_memory(self.env, self.device)
        state_rows = shared_rows(self.policy, self.env)
        self.update.release()
        sizes = self.n_envs, state_rows, self.n_steps, self.chunk
        self.collector = Collector(self.policy, *sizes, self.recorded, self.teacher)
        self.rollout_buffer = self.collector.buffer
