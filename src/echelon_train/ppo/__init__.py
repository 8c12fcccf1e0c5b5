"""The training algorithm: recurrent PPO on chunks of sequences."""

from echelon_train.ppo.algorithm import EchelonRecurrentPPO

__all__ = ["EchelonRecurrentPPO"]
