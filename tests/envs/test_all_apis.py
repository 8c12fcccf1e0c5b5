"""Properties of all environments: the same trajectory for the same seed and actions, and ends of episodes."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import flatten

from echelon_env import (
    BattleBatchEnv,
    BattleEnv,
    BattleVectorEnv,
    ConfigError,
    ControlledBattles,
    env,
    parallel_env,
)
from echelon_env.layout.actions import ACTION_DIM
from support.environments import FIGHT, SEED, Replay, record

FORMATS = [("continuous", "flat"), ("multi_discrete", "dict")]
LIFE = ["terminate", "persist"]
BLUE, RED = slice(0, 5), slice(5, 10)
OTHER_SEED = 8


@pytest.fixture(scope="module")
def recordings():
    return {
        (action_format, life): record(action_format, dead_agents=life) for action_format, _ in FORMATS for life in LIFE
    }


def vector_bytes(observation, space):
    """The bytes of an observation as one float32 vector."""
    return np.asarray(flatten(space, observation), np.float32).tobytes()


def pick(tree, *index):
    """The part of one agent in a batch of observations."""
    return {name: array[index] for name, array in tree.items()} if isinstance(tree, dict) else tree[index]


@pytest.mark.parametrize("life", LIFE)
@pytest.mark.parametrize(("action_format", "observation_format"), FORMATS)
def test_the_parallel_env_has_the_engines_trajectory(recordings, action_format, observation_format, life):
    recording = recordings[action_format, life]
    assert recording.engine.statistics["deaths"].sum() > 0
    kwargs = FIGHT | {"observation": observation_format, "action": action_format, "dead_agents": life}
    parallel = parallel_env(**kwargs)
    space = parallel.observation_space("blue_0")
    row = {agent: i for i, agent in enumerate(parallel.possible_agents)}
    observations, _ = parallel.reset(seed=SEED)
    for agent, observation in observations.items():
        assert vector_bytes(observation, space) == recording.start[row[agent]].tobytes()
    for decision in recording.decisions:
        acting = parallel.agents
        observations, rewards, *flags, _ = parallel.step({a: decision.actions[row[a]] for a in acting})
        for agent in acting:
            i = row[agent]
            assert vector_bytes(observations[agent], space) == decision.observations[i].tobytes()
            assert rewards[agent] == decision.rewards[i]
            assert [flag[agent] for flag in flags] == [decision.terminated[i], decision.truncated[i]]
    assert parallel.agents == []


@pytest.mark.parametrize(("action_format", "observation_format"), FORMATS)
def test_the_batch_has_the_engines_trajectory(recordings, action_format, observation_format):
    recording = recordings[action_format, "terminate"]
    envs = BattleBatchEnv(**FIGHT, num_envs=2, observation=observation_format, action=action_format)
    space = envs.single_observation_space
    observations, _ = envs.reset(seed=[OTHER_SEED, SEED])
    for m in range(10):
        assert vector_bytes(pick(observations, 1, m), space) == recording.start[m].tobytes()
    for decision in recording.decisions:
        observations, rewards, terminated, truncated, _ = envs.step(np.array([decision.actions] * 2))
        for m in range(10):
            assert vector_bytes(pick(observations, 1, m), space) == decision.observations[m].tobytes()
        np.testing.assert_array_equal(rewards[1], decision.rewards)
        np.testing.assert_array_equal(terminated[1], decision.terminated)
        np.testing.assert_array_equal(truncated[1], decision.truncated)


def team_reward(components):
    """The sum, in order and in float32, of the components' means over a team (n, K)."""
    total = np.float32(0)
    for mean in components.mean(axis=0):
        total += mean
    return total


@pytest.mark.parametrize(("action_format", "observation_format"), FORMATS)
def test_a_team_against_the_recorded_opponent_has_the_engines_trajectory(recordings, action_format, observation_format):
    recording = recordings[action_format, "persist"]
    decisions = recording.decisions
    formats = {"observation": observation_format, "action": action_format}
    single = BattleEnv(**FIGHT, **formats, control="team", opponent=Replay([d.vectors[RED] for d in decisions]))
    envs = BattleVectorEnv(
        **FIGHT, **formats, num_envs=2, control="team",
        opponent=Replay([np.concatenate([0 * d.vectors[RED], d.vectors[RED]]) for d in decisions]),
    )  # fmt: skip
    observation, _ = single.reset(seed=SEED)
    observations, _ = envs.reset(seed=[OTHER_SEED, SEED])
    for m in range(5):
        expected = recording.start[m].tobytes()
        assert mech_bytes(observation, m, single) == mech_bytes(pick(observations, 1), m, single) == expected
    for decision in decisions:
        action = np.concatenate(decision.actions[BLUE])
        observation, reward, *flags, _ = single.step(action)
        observations, rewards, terminated, truncated, _ = envs.step([action] * 2)
        for m in range(5):
            expected = decision.observations[m].tobytes()
            assert mech_bytes(observation, m, single) == mech_bytes(pick(observations, 1), m, single) == expected
        assert reward == rewards[1] == team_reward(decision.components[BLUE])
        assert flags == [terminated[1], truncated[1]] == [decision.terminated[0], decision.truncated[0]]


def mech_bytes(observation, mech, team):
    """The bytes of one mech's part of a team's observation as a float32 vector."""
    if isinstance(observation, dict):
        parts = [np.ravel(stream[mech]) for stream in observation.values()]
        return np.concatenate(parts).tobytes()
    return observation.reshape(len(team.mechs), -1)[mech].tobytes()


@pytest.mark.parametrize("life", LIFE)
def test_a_pilot_among_recorded_mechs_has_the_engines_trajectory(recordings, life):
    recording = recordings["continuous", life]
    pilot = BattleEnv(
        **FIGHT, dead_agents=life, pilot=2, side=1,
        teammate=Replay([d.vectors[[5, 6, 8, 9]] for d in recording.decisions]),
        opponent=Replay([d.vectors[BLUE] for d in recording.decisions]),
    )  # fmt: skip
    observation, _ = pilot.reset(seed=SEED)
    assert observation.tobytes() == recording.start[7].tobytes()
    for decision in recording.decisions:
        observation, reward, *flags, _ = pilot.step(decision.vectors[7])
        assert observation.tobytes() == decision.observations[7].tobytes()
        assert reward == decision.rewards[7]
        assert flags == [decision.terminated[7], decision.truncated[7]]
        if any(flags):
            break
    assert any(flags)


# ways to end a battle in the next decision, and the results: terminated, reason, blue's outcome


def win_the_zone(engine):
    engine.state.teams["score"][:, 0] = engine.config.zone.score_to_win


def kill_red(engine):
    engine.state.mechs["alive"][:, 5:] = 0
    engine.state.teams["mechs_alive"][:, 1] = 0


def let_time_pass(engine):
    engine.state.battles["step_count"] = engine.config.max_steps - 1


ENDINGS = {
    "zone control": (win_the_zone, {}, (True, "zone_control", 1)),
    "elimination": (kill_red, {}, (True, "elimination", 1)),
    "time limit": (let_time_pass, {}, (False, "time_limit", 0)),
    "time limit that terminates": (let_time_pass, {"time_limit": "terminate"}, (True, "time_limit", 0)),
    "max_cycles": (lambda engine: None, {"max_cycles": 1}, (False, "", 0)),
}


def ends(make, arrange, **kwargs):
    """terminated, truncated, outcome and reason of blue's first agent in a decision, after which it is over."""
    api = make("skirmish", **kwargs)
    api.reset(seed=1)
    arrange(api.engine)
    if make is parallel_env:
        results = api.step(dict.fromkeys(api.agents, np.zeros(ACTION_DIM, np.float32)))[2:]
        terminated, truncated, info = (result["blue_0"] for result in results)
    else:
        _, _, terminated, truncated, infos = api.step(np.zeros(api.action_space.shape, np.float32))
        info = {name: np.ravel(infos[name])[0] for name in ("outcome", "reason")}
        assert np.all(infos.get("_outcome", True)) and np.all(infos.get("_reason", True))
        assert not np.any(np.logical_and(terminated, truncated))
    return bool(np.ravel(terminated)[0]), bool(np.ravel(truncated)[0]), info["outcome"], info["reason"]


@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize(
    ("make", "kwargs"),
    [
        *((parallel_env, {"dead_agents": life}) for life in LIFE),
        *((BattleBatchEnv, {"num_envs": 2, "dead_agents": life}) for life in LIFE),
        *((BattleEnv, {"control": control}) for control in ("pilot", "team")),
        *((BattleVectorEnv, {"num_envs": 2, "control": control}) for control in ("pilot", "team")),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_battles_end_correctly_in_every_api(make, kwargs, name):
    arrange, overrides, (terminated, reason, outcome) = ENDINGS[name]
    assert ends(make, arrange, **kwargs, **overrides) == (terminated, not terminated, outcome, reason)


EVERY_MECH = (parallel_env, env, BattleBatchEnv)
WITH_POLICIES = (BattleEnv, BattleVectorEnv, ControlledBattles)
APIS = EVERY_MECH + WITH_POLICIES
WITH_FORMATS = tuple(make for make in APIS if make is not ControlledBattles)


@pytest.mark.parametrize(
    ("makers", "wrong", "hint"),
    [
        (APIS, "max_step", "; did you mean 'max_steps'"),
        (WITH_FORMATS, "max_episode_steps", "; did you mean 'max_cycles'"),
        (WITH_POLICIES, "oponent", "; did you mean 'opponent'"),
        ((BattleVectorEnv, BattleBatchEnv), "num_battles", "; did you mean 'num_envs'"),
        ((parallel_env, env, BattleBatchEnv, BattleEnv, ControlledBattles), "map_name", "; did you mean 'scenario'"),
        (WITH_FORMATS, "seed", r"; it is an argument of reset\(\)"),
        (EVERY_MECH, "teammate", "; here all mechs are agents, see BattleEnv"),
    ],
)
def test_the_error_about_an_argument_says_what_is_right(makers, wrong, hint):
    for make in makers:
        with pytest.raises(ConfigError, match=f"argument '{wrong}'{hint}") as caught:
            make("duel-open", **{wrong: 1})
        assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_an_unknown_argument_of_make_is_a_type_error_in_the_words_of_python(make):
    """TorchRL passes `frameskip`, and makes the environment without it after such an error."""
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'frameskip'"):
        make("echelon/DuelOpen-v1", frameskip=1)


def map_seed_of(infos):
    first = infos if "map_seed" in infos else next(iter(infos.values()))
    return int(np.ravel(first["map_seed"])[0])


@pytest.mark.parametrize("maps", [None, 3])
@pytest.mark.parametrize("make", [parallel_env, BattleEnv, BattleVectorEnv, BattleBatchEnv])
def test_a_reset_takes_the_seed_of_a_map_and_refuses_other_options(make, maps):
    environment = make("duel-open", maps=maps)
    _, infos = environment.reset(seed=1, options={"map_seed": 77})
    chosen = map_seed_of(infos)
    assert (chosen == 77) == (maps is None)
    _, infos = environment.reset(seed=2, options={"map_seed": 77})
    assert map_seed_of(infos) == chosen
    seeds = {map_seed_of(environment.reset(seed=seed)[1]) for seed in range(20)}
    assert len(seeds) > 2
    for options, message in (
        ({"map_sed": 1}, "options: unknown key 'map_sed'; did you mean 'map_seed'"),
        ({"map_seed": -1}, "map_seed: expected an integer"),
    ):
        with pytest.raises(ValueError, match=message):
            environment.reset(options=options)


@pytest.mark.parametrize("make", [parallel_env, BattleEnv, BattleVectorEnv])
def test_a_seed_determines_the_generator_that_wrappers_use(make):
    environment = make("duel-open")
    drawn = []
    for seed in (3, 3, 4):
        environment.reset(seed=seed)
        drawn.append(environment.np_random.random())
    environment.reset()
    drawn.append(environment.np_random.random())
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: env("duel"), "BattleAECEnv(BattleParallelEnv('duel', 1 v 1, flat, continuous))"),
        (lambda: BattleEnv("duel", observation="dict"), "BattleEnv('duel', 1 v 1, pilot, dict, continuous)"),
        (lambda: BattleBatchEnv("skirmish", 2), "BattleBatchEnv('skirmish', 5 v 5, 2 battles, flat, continuous)"),
        (lambda: ControlledBattles("duel", 3), "ControlledBattles('duel', 1 v 1, 3 battles, team)"),
    ],
)
def test_a_repr_says_what_an_object_is(make, text):
    assert repr(make()) == text


@pytest.mark.parametrize("mode", [None, "vector_entry_point", "sync", "async"])
def test_make_vec_limits_episodes_or_names_the_argument_that_does(mode):
    limit = "max_episode_steps"
    if mode in (None, "vector_entry_point"):
        with pytest.raises(TypeError, match="argument 'max_episode_steps'; did you mean 'max_cycles'"):
            gymnasium.make_vec("echelon/DuelOpen-v1", 2, vectorization_mode=mode, max_episode_steps=2)
        limit = "max_cycles"
    envs = gymnasium.make_vec("echelon/DuelOpen-v1", 2, vectorization_mode=mode, **{limit: 2})
    envs.reset(seed=1)
    truncated = [envs.step(envs.action_space.sample())[3].tolist() for _ in range(2)]
    envs.close()
    assert truncated == [[False, False], [True, True]]


@pytest.mark.parametrize(
    "made",
    [
        lambda: BattleEnv("trio", control="team"),
        lambda: BattleBatchEnv("trio", 2),
        lambda: BattleVectorEnv("trio", 2, control="team"),
    ],
    ids=["BattleEnv", "BattleBatchEnv", "BattleVectorEnv"],
)
def test_copies_go_on_equally(made):
    one = made()
    one.reset(seed=SEED)
    one.action_space.seed(SEED)
    one.step(one.action_space.sample())
    twins = [pickle.loads(pickle.dumps(one)), copy.deepcopy(one)]
    for _ in range(3):
        actions = one.action_space.sample()
        results = one.step(actions)
        for twin in twins:
            np.testing.assert_equal(twin.step(actions), results)
