"""All of SuperSuit's wrappers around our PettingZoo environments; docs/reference/libraries.md names the faults."""

import re
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import supersuit

import echelon_env
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.layout.observations import OBSERVATION_DIM

SEED, STEPS = 7, 8
FORWARD = np.eye(1, ACTION_DIM, Action.THROTTLE, dtype=np.float32)[0]
COLUMN = (OBSERVATION_DIM, 1)

ARGUMENTS = {
    "action_lambda_v1": (lambda action, _: action, lambda space: space),
    "delay_observations_v0": (2,),
    "dtype_v0": (np.float64,),
    "frame_skip_v0": (2,),
    "frame_stack_v1": (2,),
    "frame_stack_v2": (2,),
    "max_observation_v0": (2,),
    "nan_noop_v0": (0 * FORWARD,),
    "observation_lambda_v0": (lambda observation, _: observation,),
    "reshape_v0": (COLUMN,),
    "reward_lambda_v0": (lambda reward: reward,),
    "scale_actions_v0": (1.0,),
    "sticky_actions_v0": (0.5,),
}
WITHOUT_ARGUMENTS = (
    "agent_indicator_v0", "clip_actions_v0", "clip_reward_v0", "flatten_v0", "nan_random_v0", "nan_zeros_v0",
    "normalize_obs_v0", "pad_action_space_v0", "pad_observations_v0", "resize_v1",
)  # fmt: skip
WRAPPERS = (*ARGUMENTS, *WITHOUT_ARGUMENTS)
CONVERSIONS = {
    "concat_vec_envs_v1": lambda: supersuit.concat_vec_envs_v1(
        supersuit.pettingzoo_env_to_vec_env_v1(battle(dead_agents="persist")), 2
    ),
    "gym_vec_env_v0": lambda: supersuit.gym_vec_env_v0(gymnasium.make("echelon/DuelOpen-v1"), 2),
    "pettingzoo_env_to_vec_env_v1": lambda: supersuit.pettingzoo_env_to_vec_env_v1(battle(dead_agents="persist")),
    "vectorize_aec_env_v0": lambda: supersuit.vectorize_aec_env_v0(battle(echelon_env.env), 2),
}
EXCLUDED = {
    "black_death_v3",  # tests/interop/test_sb3.py
    "color_reduction_v0",  # of pictures
    "stable_baselines3_vec_env_v0",  # tests/interop/test_sb3.py
    "stable_baselines_vec_env_v0",  # of the predecessor of stable-baselines3
}


def battle(make=echelon_env.parallel_env, **kwargs):
    """A battle on lava in which a mech of three dies in the third decision if all walk forward."""
    scouts = {"blue": ["scout"] * 3, "red": ["scout"] * 3}
    config = echelon_env.make_config(
        "duel-open", terrain={"size": 50, "biomes": ["volcano"]}, max_steps=STEPS, **scouts
    )
    classes = tuple(replace(mech_class, armour=0.01) for mech_class in config.catalog.mech_classes)
    return make(replace(config, catalog=replace(config.catalog, mech_classes=classes)), **kwargs)


def wrapped(name, env):
    if name == "resize_v1":
        return supersuit.resize_v1(supersuit.reshape_v0(env, COLUMN), 20, 20)
    return getattr(supersuit, name)(env, *ARGUMENTS.get(name, ()))


def check(name, space, observation):
    """Check that an observation is in its space."""
    if name == "agent_indicator_v0":  # its known fault: the indicator is the greatest bound of all entries
        indicator = observation[OBSERVATION_DIM:]
        assert indicator.max() == space.high[:OBSERVATION_DIM].max() > space.high[OBSERVATION_DIM]
        observation = np.minimum(observation, space.high)
    assert space.contains(observation)


def test_every_wrapper_of_supersuit_has_a_test():
    names = {name for name in dir(supersuit) if re.search(r"_v\d+$", name)}
    assert names == {*WRAPPERS} | CONVERSIONS.keys() | EXCLUDED


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_parallel_battle_with_deaths_through(name, dead_agents):
    env = wrapped(name, battle(dead_agents=dead_agents))
    frames = 2 if name == "frame_skip_v0" else 1
    rounds = []
    for _ in range(2):
        observations, _ = env.reset(seed=SEED)
        numbers, steps, living = [env.unwrapped.np_random.random()], 0, len(env.agents)
        while env.agents:
            for agent in env.agents:
                check(name, env.observation_space(agent), observations[agent])
            if name == "frame_skip_v0" and dead_agents == "terminate" and steps == 1:
                with pytest.raises(ValueError, match="expected agents among"):  # it lets the dead act
                    env.step(dict.fromkeys(env.agents, FORWARD))
                return
            observations, rewards, *_, infos = env.step(dict.fromkeys(env.agents, FORWARD))
            numbers += rewards.values()
            living = min(living, sum(info["alive"] for info in infos.values()))
            steps += 1
        assert steps == STEPS / frames
        assert living < 6
        rounds.append(numbers)
    if name != "sticky_actions_v0":  # its generator is not the environment's
        assert rounds[0] == rounds[1]


@pytest.mark.filterwarnings("ignore:agent_selector is deprecated:DeprecationWarning")  # PettingZoo's, of SuperSuit
@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_conversion(name):
    envs = CONVERSIONS[name]()
    envs.reset()
    if name == "vectorize_aec_env_v0":
        for _ in envs.agent_iter(6 * STEPS + 6):
            envs.step(np.stack([FORWARD] * 2))
        return
    for _ in range(STEPS + 2):
        observations, *_ = envs.step(np.stack([FORWARD] * envs.num_envs))
    assert observations.shape == (envs.num_envs, OBSERVATION_DIM)


@pytest.mark.parametrize("name", ["clip_reward_v0", "frame_stack_v2"])
def test_a_battle_in_turns_with_deaths_through(name):
    env = wrapped(name, battle(echelon_env.env))
    env.reset(seed=SEED)
    turns = 0
    for agent in env.agent_iter(100):
        observation, _, terminated, truncated, _ = env.last()
        check(name, env.observation_space(agent), observation)
        env.step(None if terminated or truncated else FORWARD)
        turns += not (terminated or truncated)
    assert not env.agents
    assert 6 < turns < 6 * STEPS
