"""The recurrent policy: encoders of the observation's streams, an LSTM, and a distribution over hybrid actions."""

from echelon_train.policy.recurrent import BattlePolicy, action_space, build_policy, observation_space

__all__ = ["BattlePolicy", "action_space", "build_policy", "observation_space"]
