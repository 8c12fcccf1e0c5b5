import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import max_cycles_test

import echelon_env
from echelon_env.engine.state import BODY
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.spaces.describe import describe_action, describe_observation
from echelon_env.spaces.explain import explain_action
from support.checkers import check_pettingzoo
from support.environments import FORMATS


@pytest.fixture
def env():
    env = echelon_env.parallel_env("skirmish", max_steps=60)
    env.reset(seed=5)
    return env


def act(env):
    return {agent: env.action_space(agent).sample() for agent in env.agents}


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
@pytest.mark.parametrize("scenario", ["skirmish", "hunt"])
def test_official_checkers(scenario, dead_agents):
    check_pettingzoo(scenario=scenario, dead_agents=dead_agents, max_steps=12)


@pytest.mark.parametrize("formats", FORMATS, ids=str)
def test_official_checkers_in_every_format(formats):
    check_pettingzoo(scenario="duel", max_steps=12, **formats)


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
def test_max_cycles(dead_agents):
    max_cycles_test(echelon_env)
    env = echelon_env.parallel_env("duel", max_cycles=9, dead_agents=dead_agents)
    env.max_cycles = 3
    for _ in range(2):
        env.reset(seed=0)
        for cycle in range(3):
            assert len(env.agents) == 2
            _, _, terminations, truncations, _ = env.step(act(env))
            assert not any(terminations.values())
            assert set(truncations.values()) == {cycle == 2}
    assert env.agents == []
    with pytest.raises(echelon_env.ConfigError, match="max_cycles"):
        env.max_cycles = 0


def test_max_cycles_do_not_truncate_agents_that_have_died(env):
    """Before the last cycle or in it."""
    env.max_cycles = 3
    shots = np.zeros(ACTION_DIM, np.float32)  # damage is applied in ticks with events
    shots[Action.PRIMARY : Action.SPECIAL + 1] = 1.0
    for cycle, victim in enumerate(["red_0", None, "red_1"]):
        if victim:
            env.engine.state.pending[0, env.possible_agents.index(victim), BODY] = 1e9
        env.engine.state.mechs["cooldown"] = 0
        _, _, terminations, truncations, infos = env.step(dict.fromkeys(env.agents, shots))
        assert [agent for agent in terminations if terminations[agent]] == [victim] * (victim is not None)
        assert truncations == {agent: cycle == 2 and agent != victim for agent in infos}
    assert env.agents == []


def test_the_state_shows_everything_to_either_team(env):
    for team in (0, 1):
        state = env.state(team)
        assert env.state_space.contains(state)
        np.testing.assert_array_equal(state, env.engine.global_state(team)[0])
    np.testing.assert_array_equal(env.state(), env.state(0))
    cycle = echelon_env.env("skirmish", max_steps=60)
    cycle.reset(seed=5)
    np.testing.assert_array_equal(cycle.state(), env.state())
    assert cycle.state_space == env.state_space
    with pytest.raises(ValueError, match="team"):
        env.state(2)
    with pytest.raises(ResetNeeded):
        echelon_env.parallel_env("duel").state()


def test_actions_are_explained_and_entries_described(env):
    action = np.zeros(ACTION_DIM, np.float32)
    action[Action.JET] = 1
    parts = env.explain_action("blue_0", action)
    assert parts == explain_action(env.engine, 0, 0, action, env.possible_agents)
    assert "refused" in str(next(part for part in parts if part.name == "jet"))  # a heavy mech has no jets
    assert env.explain_action("red_3", action) == explain_action(env.engine, 0, 8, action, env.possible_agents)
    classes = {mech_class.name: mech_class for mech_class in env.config.mech_classes}
    assert env.describe_observation("red_4") == describe_observation(classes["scout"])
    assert env.describe_action("blue_0") == describe_action(classes["heavy"])
    assert env.describe_action("blue_0") != env.describe_action("blue_4")
    with pytest.raises(ResetNeeded):
        echelon_env.parallel_env("duel").explain_action("blue_0", action)


@pytest.mark.parametrize("seed", [-7, "seven", True, 2**64])
def test_a_bad_seed_changes_nothing(env, seed):
    kept = env.reset(seed=9)[0]["blue_0"]
    with pytest.raises(ValueError, match=r"seed: expected an integer in \[0, 2\*\*64\)"):
        env.reset(seed=seed)
    following = env.reset()[0]["blue_0"]
    twin = echelon_env.parallel_env("skirmish", max_steps=60)
    np.testing.assert_array_equal(twin.reset(seed=np.int64(9))[0]["blue_0"], kept)
    np.testing.assert_array_equal(twin.reset()[0]["blue_0"], following)


def test_bad_input(env):
    good = act(env)
    with pytest.raises(ValueError, match=r"got none for \['blue_0'\]"):
        env.step({agent: action for agent, action in good.items() if agent != "blue_0"})
    with pytest.raises(ValueError, match="action of 'red_1'"):
        env.step(good | {"red_1": "forward"})
    *_, infos = env.step(good | {"red_1": np.full(ACTION_DIM, np.nan, np.float32)})
    assert (infos["red_1"]["bad_actions"], infos["red_2"]["bad_actions"]) == (ACTION_DIM, 0)
    while env.agents:
        env.step(act(env))
    for over in (env, echelon_env.parallel_env("duel")):
        with pytest.raises(ResetNeeded):
            over.step({})
    with pytest.raises(echelon_env.ConfigError, match="unknown render_mode 'rgb_arry'; did you mean 'rgb_array'"):
        echelon_env.parallel_env("duel", render_mode="rgb_arry")


def test_the_name_tells_the_scenario(tmp_path):
    assert str(echelon_env.parallel_env("duel-open")) == "echelon_duel_open_v0"
    assert str(echelon_env.env("duel-open")) == "echelon_duel_open_v0"
    assert str(echelon_env.parallel_env(echelon_env.make_config("duel"))) == "echelon_v0"
    (tmp_path / "raid.toml").write_text('description = "x"\nblue = ["light"]\nred = ["light"]')
    assert echelon_env.env(tmp_path / "raid.toml").metadata["name"] == "echelon_raid_v0"
