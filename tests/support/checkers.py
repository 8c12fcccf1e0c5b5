"""The official checkers of PettingZoo, Gymnasium and Stable-Baselines3, without advice that does not apply."""

import warnings
from typing import Any

from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import echelon_env


def check_pettingzoo(num_cycles: int = 50, **kwargs: Any) -> None:
    """Check the parallel and the AEC environment with these arguments."""

    def make() -> Any:
        return echelon_env.parallel_env(**kwargs)

    parallel_api_test(make(), num_cycles=num_cycles)
    parallel_seed_test(make, num_cycles=min(num_cycles, 10))
    with warnings.catch_warnings():  # its advice for spaces that are neither Box nor Discrete
        warnings.filterwarnings("ignore", ".* space for each agent probably should be gymnasium.spaces.box or")
        warnings.filterwarnings("ignore", "Observation is not a NumPy array")
        api_test(echelon_env.env(**kwargs), num_cycles=num_cycles)


def check_gymnasium(
    env: Any, observation: str = "flat", action: str = "continuous", mask_in_observation: bool = False
) -> None:
    """Check an environment with its formats. Render modes are checked only for environments from the registry."""
    check_env(env, skip_render_check=env.spec is None)
    nested = observation == "dict" and mask_in_observation
    if action == "dict" or nested:
        return  # SB3 supports neither dicts of actions nor dicts in dicts
    with warnings.catch_warnings():  # its advice for its own CNN and MLP policies
        for advice in (
            "Your observation .* unconventional shape",
            "It seems that your observation",
            "The minimal resol",
            "Treating image space as channels-last",
        ):
            warnings.filterwarnings("ignore", advice)
        sb3_check_env(env)
