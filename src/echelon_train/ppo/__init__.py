"""The training algorithm: recurrent PPO."""

from echelon_train.ppo.algorithm import EchelonRecurrentPPO

__all__ = ["EchelonRecurrentPPO"]
