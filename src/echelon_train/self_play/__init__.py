"""Self-play without a league, for any on-policy model of stable-baselines3: its past policies are its opponents.

>>> from sb3_contrib import RecurrentPPO
>>> from echelon_env import make_config
>>> from echelon_train import BattleVecEnv, PastPolicies, SelfPlayCallback
>>> battle = make_config("duel", max_steps=8, dead_agents="persist")
>>> opponents = PastPolicies(battle)
>>> env = BattleVecEnv(battle, 2, opponent=opponents)
>>> model = RecurrentPPO("MlpLstmPolicy", env, n_steps=16, batch_size=32, n_epochs=1, device="cpu")
>>> _ = model.learn(128, callback=SelfPlayCallback(opponents, every=64))
>>> list(opponents.members)
['0000000000', '0000000064', '0000000128']
"""

from echelon_train.self_play.callback import SelfPlayCallback
from echelon_train.self_play.past_policies import PastPolicies

__all__ = ["PastPolicies", "SelfPlayCallback"]
