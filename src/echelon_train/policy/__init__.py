"""The recurrent policy: observation encoders, an LSTM, and a distribution over choices."""

from echelon_train.policy.build import build_policy
from echelon_train.policy.distributions import ActionDistribution
from echelon_train.policy.recurrent import BattlePolicy
from echelon_train.policy.sequences import CnnLstmPolicy, MlpLstmPolicy, MultiInputLstmPolicy, SequencePolicy
from echelon_train.policy.spaces import action_space, observation_space

__all__ = [
    "ActionDistribution",
    "BattlePolicy",
    "CnnLstmPolicy",
    "MlpLstmPolicy",
    "MultiInputLstmPolicy",
    "SequencePolicy",
    "action_space",
    "build_policy",
    "observation_space",
]
