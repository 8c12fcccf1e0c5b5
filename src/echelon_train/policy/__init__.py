"""The recurrent policy: observation encoders, an LSTM, and a distribution over hybrid actions."""

from echelon_train.policy.build import build_policy
from echelon_train.policy.distributions import HybridDistribution
from echelon_train.policy.recurrent import BattlePolicy
from echelon_train.policy.sequences import CnnLstmPolicy, MlpLstmPolicy, MultiInputLstmPolicy, SequencePolicy
from echelon_train.policy.spaces import action_space, observation_space

__all__ = [
    "BattlePolicy",
    "CnnLstmPolicy",
    "HybridDistribution",
    "MlpLstmPolicy",
    "MultiInputLstmPolicy",
    "SequencePolicy",
    "action_space",
    "build_policy",
    "observation_space",
]
