"""The recurrent policy: encoders of the observation's streams, an LSTM, and a distribution over hybrid actions."""

from echelon_train.policy.distributions import HybridDistribution
from echelon_train.policy.recurrent import BattlePolicy, action_space, build_policy, observation_space
from echelon_train.policy.sequences import CnnLstmPolicy, MlpLstmPolicy, MultiInputLstmPolicy, SequencePolicy

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
