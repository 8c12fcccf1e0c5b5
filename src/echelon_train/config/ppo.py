"""The settings of PPO, with the names and meanings of stable-baselines3.

Each setting is one field of `PPOConfig`, which declares its name, default, range and help. Run files (``[ppo]``),
command-line options (``--ppo.NAME``), and the constructor, attributes and saved files of `EchelonRecurrentPPO` follow
from the fields.
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from echelon_env.config.schema import ConfigError, check_fields, quantity
from echelon_train.config.schedules import Schedule

CompileMode = Literal["auto", "off", "graphs"]
"""How a policy is computed: ``off``: kernel by kernel; ``graphs``: kernels are recorded in CUDA graphs and replayed;
``auto``: ``graphs`` for a dense policy on CUDA that can be recorded, else ``off``."""

COMPILE_MODES: tuple[CompileMode, ...] = get_args(CompileMode)


def schedule(value: str | float, low: float, high: float, *, help: str) -> Any:
    """Declare a field of type `Schedule`. `low` and `high` are the inclusive range of its start and end."""
    return field(default=Schedule.parse(value, "default"), metadata={"low": low, "high": high, "help": help})


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Settings of PPO. Raises `ConfigError` for values out of range and invalid combinations."""

    REMOVED: ClassVar[frozenset[str]] = frozenset({
        "auxiliary_coef", "burn_in", "clip_range_vf", "critic_lr_scale", "inactive_vf_scale", "kickstart_motion_scale",
        "motion_ent_scale",
        "ratio", "recompute_advantages",
    })  # fmt: skip
    """Settings of earlier versions, for error messages."""

    n_steps: int = quantity(32, "decisions", 1, 10**6, help="decisions of each mech in a rollout")
    chunk: int = quantity(
        16, "decisions", 1, 10**6, help="length of the sequences that the LSTM is trained on, a divisor of n_steps"
    )
    batch_size: int = quantity(
        1024, "samples", 1, 10**7, help="samples of a minibatch, a multiple of chunk; at most a rollout"
    )
    accumulate: int = quantity(1, "parts", 1, 10**6, help="gradient accumulation: parts of a minibatch, to save memory")
    n_epochs: int = quantity(2, "passes", 1, 100, help="passes over a rollout in an update")
    learning_rate: Schedule = schedule("linear:7e-4:7e-5", 0, 1, help="learning rate of Adam")
    gamma: Schedule = schedule(0.99, 0, 1, help="discount factor, per decision")
    gae_lambda: float = quantity(0.9, "", 0, 1, help="lambda of generalised advantage estimation")
    clip_range: Schedule = schedule(0.2, 1e-9, 10, help="clip range of the probability ratio")
    ent_coef: Schedule = schedule("linear:0.001:0.0001", 0, 10, help="weight of the entropy bonus in the loss")
    vf_coef: float = quantity(0.25, "", 0, 10, help="weight of the critic's loss")
    policy_coef: float = quantity(1.0, "", 0, 10, help="weight of the policy's loss; 0: imitation only")
    kickstart_coef: Schedule = schedule(
        0.0, 0, 1e3, help="weight of the cross-entropy to the teacher's actions, see --teacher"
    )
    learner_share: Schedule = schedule(
        1.0, 0, 1, help="share of the battles that the learner plays; the teacher plays the others"
    )
    critic_warmup: int = quantity(0, "rollouts", 0, 10**6, help="first rollouts that train what only the critic uses")
    max_grad_norm: float = quantity(1.0, "", 1e-9, 1e9, help="maximum norm of the gradient")
    target_kl: float = quantity(
        0.0, "nats", 0, 1e3, help="an update stops early at 1.5 times this KL divergence; 0: never"
    )
    normalize_returns: bool = field(
        default=True, metadata={"help": "normalise the critic's targets by running moments (PopArt)"}
    )
    return_std: float = quantity(10.0, "", 1e-6, 1e6, help="initial estimate of the returns' standard deviation")
    normalize_advantage: bool = field(
        default=True, metadata={"help": "normalise the advantages of a rollout over all mechs"}
    )

    def __post_init__(self) -> None:
        check_fields(self, "ppo.")
        for each in dataclasses.fields(self):
            value, key = getattr(self, each.name), f"ppo.{each.name}"
            low, high = each.metadata.get("low", 0.0), each.metadata.get("high", 0.0)
            if isinstance(value, Schedule) and not (low <= value.start <= high and low <= value.end <= high):
                raise ConfigError(f"config key {key!r}: expected numbers from {low} to {high}, got {value}", key)
        for name, valid, expected in (
            ("chunk", self.n_steps % self.chunk == 0, f"a divisor of ppo.n_steps {self.n_steps}"),
            ("batch_size", self.batch_size % self.chunk == 0, f"a multiple of ppo.chunk {self.chunk}"),
            (
                "learner_share",
                self.policy_coef == 0 or self.learner_share.start == self.learner_share.end == 1,
                "1, as ppo.policy_coef is not 0: the policy's loss needs its own actions",
            ),
        ):
            if not valid:
                raise ConfigError(f"ppo.{name}: expected {expected}, got {getattr(self, name)}", f"ppo.{name}")

    def arguments(self) -> dict[str, Any]:
        """The settings by name, as keyword arguments of `EchelonRecurrentPPO`."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    @classmethod
    def schedules(cls) -> tuple[str, ...]:
        """The names of the settings that are schedules."""
        return tuple(name for name, hint in typing.get_type_hints(cls).items() if hint is Schedule)
