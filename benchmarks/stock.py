"""sb3-contrib's RecurrentPPO on our policies: what our algorithm is compared with."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from echelon_env.layout.parts import SIZES
from echelon_train.policy import BattlePolicy, action_space
from echelon_train.policy.choices import environment_actions


def stock_version(policy: type) -> type:
    """The same network, its LSTM run as sb3-contrib runs it; a `BattlePolicy` takes the actions of `Choices`."""
    loop = staticmethod(RecurrentActorCriticPolicy._process_sequence)
    members: dict[str, Any] = {"_process_sequence": loop, "actor_mask": lambda self, observations: None}  # all rows act
    if issubclass(policy, BattlePolicy):

        def begin(self: Any, observations: Any, actions: Any, *args: Any, **kwargs: Any) -> None:
            policy.__init__(self, observations, action_space(), *args, **kwargs)
            self.action_space = actions

        def forward(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
            actions, values, log_probs, states = policy.forward(self, *args, **kwargs)
            return actions, values, log_probs.sum(1), states  # the stock buffer has no blocks of an action

        members |= {"__init__": begin, "forward": forward}
    return type("Stock" + policy.__name__, (policy,), members)


class Choices(VecEnvWrapper):  # type: ignore[misc]
    """Battles that take a policy's choices, because the stock buffer keeps what the environment is given."""

    def __init__(self, env: VecEnv) -> None:
        super().__init__(env, action_space=spaces.MultiDiscrete(np.array(SIZES)))

    def reset(self) -> Any:
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        self.venv.step_async(environment_actions(torch.as_tensor(actions)).numpy())

    def step_wait(self) -> Any:
        return self.venv.step_wait()
