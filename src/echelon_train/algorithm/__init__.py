"""The training algorithm: recurrent PPO on chunks of sequences."""

from echelon_train.algorithm.ppo import EchelonRecurrentPPO

__all__ = ["EchelonRecurrentPPO"]
