import dataclasses
import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from echelon_env import BattleEnv, ConfigError, make_config, opponents
from echelon_env.config.curriculum import Curriculum, Progress, ProgressState, make_curriculum
from echelon_env.config.scenario import ScenarioLike
from echelon_env.envs.curriculum import CurriculumEnv, CurriculumParallelEnv
from echelon_env.envs.parallel import BattleParallelEnv
from echelon_env.layout.actions import ACTION_DIM

DUELS = make_curriculum(["duel-open", "duel-cover", "duel"])


def hasty(*scenarios: ScenarioLike) -> Curriculum:
    """A curriculum that changes the stage after every battle, for any outcome."""
    return make_curriculum(scenarios, window=1, promote=0.0, demote=-1.0)


def play_on(env: CurriculumEnv, player: opponents.Policy, observation: np.ndarray) -> dict:
    """Play the battle in progress to its end and return the last info."""
    done = False
    player.reset(np.ones(1, np.bool_))
    while not done:
        observation, _, terminated, truncated, info = env.step(player.act(observation[None])[0])
        done = terminated or truncated
        assert {"stage", "scenario"} <= info.keys()
    return info


def act(env):
    return {agent: np.zeros(ACTION_DIM, np.float32) for agent in env.agents}


def test_official_checkers():
    with warnings.catch_warnings():  # SB3 advises against long vectors for its CNN policies
        warnings.simplefilter("ignore")
        env = CurriculumEnv(hasty("duel-open", "skirmish"), max_steps=5)
        check_env(env)
        sb3_check_env(env)

    def make() -> CurriculumParallelEnv:
        return CurriculumParallelEnv(hasty("skirmish", "duel-open", "hunt"), max_steps=5)

    with warnings.catch_warnings():  # the test expects all possible agents in every battle
        warnings.filterwarnings("ignore", "No agents present but not all possible_agents")
        parallel_api_test(make(), num_cycles=40)
    parallel_seed_test(make)


def test_wins_promote_and_losses_demote():
    curriculum = make_curriculum(["duel-open", "duel"], window=2, promote=1.0, demote=0.0)
    small = {"zone": {"score_to_win": 2.0}, "terrain": {"size": 32}, "max_steps": 60}
    env = CurriculumEnv(curriculum, opponent="novice", **small)
    player = opponents.make("novice", 5, env.config)
    model = Progress(curriculum)
    outcomes, stages = [], []
    for battle in range(24):
        observation, start = env.reset(seed=0 if battle == 0 else None)
        assert (start["stage"], start["scenario"]) == (model.stage, model.scenario.name)
        assert env.config == make_config(model.scenario.config, **small)
        end = play_on(env, player, observation)
        assert (end["stage"], end["scenario"]) == (start["stage"], start["scenario"])
        model.record(end["outcome"] > 0)
        assert env.progress.state == model.state
        outcomes.append(end["outcome"])
        stages.append(end["stage"])
    assert {1, -1} <= set(outcomes)
    assert set(np.diff(stages)) == {-1, 0, 1}


def test_a_seed_restarts_the_battles_and_not_the_progress():
    """The battles of a stage after a seed equal those of `BattleEnv`, also with battles of other stages in between."""
    kwargs = {"max_steps": 2, "maps": 5, "regenerate": 2}
    env = CurriculumEnv(hasty("duel-open", "duel"), **kwargs)
    plain = {name: BattleEnv(name, **kwargs) for name in ("duel-open", "duel")}

    def expect(name: str, seed: int, battle: int) -> tuple[bytes, int]:
        observation, info = plain[name].reset(seed=seed)
        for _ in range(battle):
            observation, info = plain[name].reset()
        return observation.tobytes(), info["map_seed"]

    def begin(seed: int | None = None) -> tuple[bytes, int]:
        observation, info = env.reset(seed=seed)
        return observation.tobytes(), info["map_seed"]

    assert begin(7) == expect("duel-open", 7, 0)
    assert begin() == expect("duel-open", 7, 1)
    env.progress = Progress(env.progress.curriculum, ProgressState(1))
    assert begin() == expect("duel", 7, 0)
    assert [begin()[1], begin()[1]] == [expect("duel", 7, 1)[1], expect("duel", 7, 2)[1]]
    env.progress = Progress(env.progress.curriculum, ProgressState(0))
    assert begin() == expect("duel-open", 7, 2)
    env.progress = Progress(env.progress.curriculum, ProgressState(1))
    assert begin(8) == expect("duel", 8, 0)
    assert env.progress.stage == 1
    parallel = CurriculumParallelEnv(["duel", "duel-open"], **kwargs)
    assert parallel.reset(seed=7)[0]["blue_0"].tobytes() == expect("duel", 7, 0)[0]
    assert parallel.reset()[0]["blue_0"].tobytes() == expect("duel", 7, 1)[0]
    assert not np.array_equal(CurriculumEnv(DUELS).reset()[0], CurriculumEnv(DUELS).reset()[0])


@pytest.mark.parametrize("make", [CurriculumEnv, CurriculumParallelEnv])
def test_a_bad_seed_or_option_changes_nothing(make):
    env, twin = make(DUELS), make(DUELS)
    for one in (env, twin):
        one.reset(seed=3)
    for arguments in ({"seed": -1}, {"seed": 5, "options": {"map_sed": 1}}, {"seed": 5, "options": {"map_seed": -1}}):
        with pytest.raises(ValueError, match=r"seed: expected an integer|options: unknown key 'map_sed'"):
            env.reset(**arguments)
    np.testing.assert_equal(env.reset()[0], twin.reset()[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CurriculumEnv(["skirmish", "duel"], pilot=3), r"stage 1 \(duel\): pilot: expected a place"),
        (lambda: CurriculumEnv(["duel", "skirmish"], control="team"), r"stage 1: .* got one of 5 after one of 1"),
        (lambda: CurriculumEnv(DUELS, scenario="duel"), "unexpected keyword argument 'scenario'"),
        (lambda: CurriculumParallelEnv(DUELS, sid=1), "unexpected keyword argument 'sid'; did you mean 'side'"),
        (lambda: CurriculumEnv("duel"), "a sequence of scenarios"),
        (lambda: CurriculumParallelEnv(DUELS, side=2), "side: expected 0 or 1, got 2"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_agents_are_those_of_the_stage():
    hunt = dataclasses.replace(make_config("hunt"), blue=("heavy", "medium"), red=("light",) * 4)
    env = CurriculumParallelEnv(hasty("duel-open", hunt, "skirmish"), max_steps=2)
    assert env.possible_agents == [f"{team}_{i}" for team in ("blue", "red") for i in range(5)]
    assert env.agents == []
    for scenario, blue, red in (("duel-open", 1, 1), ("stage 1", 2, 4), ("skirmish", 5, 5), ("skirmish", 5, 5)):
        observations, infos = env.reset()
        assert env.agents == list(observations) == list(infos)
        assert env.agents == [f"blue_{i}" for i in range(blue)] + [f"red_{i}" for i in range(red)]
        assert {info["scenario"] for info in infos.values()} == {scenario}
        assert (len(env.config.blue), len(env.config.red)) == (blue, red)
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation)
            assert env.action_space(agent).contains(np.zeros(ACTION_DIM, np.float32))
        while env.agents:
            *_, infos = env.step(act(env))
        assert {info["scenario"] for info in infos.values()} == {scenario}


def test_the_wins_of_one_side_count():
    """Blue walks to the zone of a small map and wins; red stands still."""
    won = {}
    for side in (0, 1):
        env = CurriculumParallelEnv(["duel"], side=side, terrain={"size": 32}, zone={"score_to_win": 2.0})
        walker = opponents.make("novice", 0, env.config)
        walker.reset(np.ones(1, np.bool_))
        observations, _ = env.reset(seed=0)
        while env.agents:
            actions = act(env) | {"blue_0": walker.act(observations["blue_0"][None])[0]}
            observations, *_, infos = env.step(actions)
        assert infos["blue_0"]["outcome"] == 1
        won[side] = env.progress.state.won
    assert won == {0: (True,), 1: (False,)}


def test_max_cycles_ends_an_episode_without_a_win():
    env = CurriculumParallelEnv(hasty("duel-open", "duel"), max_cycles=2)
    env.reset()
    env.step(act(env))
    *_, infos = env.step(act(env))
    assert infos["blue_0"]["reason"] == ""
    assert env.progress.stage == 1


def test_a_draw_is_no_win_and_the_stage_describes_the_battle():
    pilot, env = (make(DUELS, max_steps=1) for make in (CurriculumEnv, CurriculumParallelEnv))
    with pytest.raises(ResetNeeded):
        env.state()
    plain = BattleParallelEnv("duel-open", max_steps=1)
    for each in (pilot, env, plain):
        each.reset(seed=0)
    np.testing.assert_array_equal(env.state(1), plain.state(1))
    idle = np.zeros(ACTION_DIM, np.float32)
    assert pilot.explain_action(idle) == env.explain_action("blue_0", idle) == plain.explain_action("blue_0", idle)
    assert pilot.describe_observation() == plain.describe_observation("blue_0") == env.describe_observation("blue_0")
    *_, info = pilot.step(idle)
    env.step(act(env))
    assert info["outcome"] == 0
    assert pilot.progress.state.won == env.progress.state.won == (False,)
