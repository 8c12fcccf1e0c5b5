import numpy as np
import pettingzoo
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
@pytest.mark.parametrize("scenario", ["skirmish", "hunt", "battle"])
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
    choices = echelon_env.parallel_env("skirmish", action="multi_discrete")
    choices.reset(seed=5)
    assert choices.explain_action("blue_0", choices.action_space("blue_0").sample())
    classes = {mech_class.name: mech_class for mech_class in env.config.mech_classes}
    assert env.describe_observation("red_4") == describe_observation(classes["scout"])
    assert env.describe_action("blue_0") == describe_action(classes["heavy"])
    assert env.describe_action("blue_0") != env.describe_action("blue_4")
    for ask in (env.describe_action, env.describe_observation, lambda agent: env.explain_action(agent, action)):
        with pytest.raises(ValueError, match="unknown agent 'blue_5'"):
            ask("blue_5")
    with pytest.raises(ValueError, match=rf"action of 'blue_1': expected shape \({ACTION_DIM},\)"):
        env.explain_action("blue_1", action[1:])
    with pytest.raises(ResetNeeded):
        echelon_env.parallel_env("duel").explain_action("blue_0", action)


def test_the_unwrapped_aec_env_explains_and_describes(env):
    action = np.zeros(ACTION_DIM, np.float32)
    cycle = echelon_env.env("skirmish", max_steps=60)
    cycle.reset(seed=5)
    inner = cycle.unwrapped
    assert inner.explain_action("red_3", action) == env.explain_action("red_3", action)
    assert inner.describe_observation("red_3") == env.describe_observation("red_3")
    assert inner.describe_action("red_3") == env.describe_action("red_3")
    for agent, mask in env.action_masks().items():
        np.testing.assert_array_equal(inner.action_masks()[agent], mask)


def test_the_callers_actions_are_not_modified(env):
    actions = {agent: np.full(ACTION_DIM, np.nan, np.float64) for agent in env.agents}
    for action in actions.values():
        action.flags.writeable = False
    env.step(actions)
    assert all(np.isnan(action).all() for action in actions.values())
    mixed = {agent: action.tolist() if i % 2 else action for i, (agent, action) in enumerate(act(env).items())}
    env.step(mixed)


def test_without_a_seed_battles_differ(env):
    battles = {env.reset()[0]["blue_0"].tobytes() for _ in range(3)}
    battles |= {echelon_env.parallel_env("skirmish").reset()[0]["blue_0"].tobytes() for _ in range(3)}
    assert len(battles) == 6


@pytest.mark.parametrize("seed", [-7, 1.5, "seven", True, 2**64, [1]])
def test_a_bad_seed_changes_nothing(env, seed):
    kept = env.reset(seed=9)[0]["blue_0"]
    with pytest.raises(ValueError, match=r"seed: expected an integer in \[0, 2\*\*64\)"):
        env.reset(seed=seed)
    following = env.reset()[0]["blue_0"]
    twin = echelon_env.parallel_env("skirmish", max_steps=60)
    np.testing.assert_array_equal(twin.reset(seed=np.int64(9))[0]["blue_0"], kept)
    np.testing.assert_array_equal(twin.reset()[0]["blue_0"], following)


def test_dead_agents_leave_and_the_others_continue():
    env = echelon_env.parallel_env("skirmish")
    env.reset(seed=0)
    env.engine.state.mechs["armour"][0, 5] = 1e-9
    env.engine.state.pending[0, 5, 0] = 0.0
    mech, victim = env.engine.state.mechs[0, 1], env.engine.state.mechs[0, 5]
    columns = env.engine.state.columns[0]
    columns["opaque"] = columns["solid"] = 0
    mech["x"], mech["y"], mech["yaw"], mech["facing_x"], mech["facing_y"] = 50, 50, 0, 1, 0
    victim["x"], victim["y"] = 55, 50
    actions = {agent: np.zeros(ACTION_DIM, np.float32) for agent in env.agents}
    actions["blue_1"][4] = 1
    _, rewards, terminations, truncations, infos = env.step(actions)
    assert terminations["red_0"]
    assert sum(terminations.values()) == 1
    assert not any(truncations.values())
    assert "red_0" not in env.agents
    assert len(env.agents) == 9
    assert not infos["red_0"]["alive"]
    assert rewards["blue_1"] > 9
    with pytest.raises(ValueError, match=r"expected agents among .*, got \['red_0'\]"):
        env.step(actions)


def test_bad_input(env):
    good = act(env)
    with pytest.raises(ValueError, match=r"got none for \['blue_0'\]"):
        env.step({agent: action for agent, action in good.items() if agent != "blue_0"})
    with pytest.raises(ValueError, match=r"got \['green_0'\]"):
        env.step(good | {"green_0": good["red_0"]})
    with pytest.raises(
        ValueError, match=rf"action of 'red_1': expected shape \({ACTION_DIM},\), got \({ACTION_DIM - 1},\)"
    ):
        env.step(good | {"red_1": np.zeros(ACTION_DIM - 1, np.float32)})
    with pytest.raises(ValueError, match="action of 'red_1'"):
        env.step(good | {"red_1": "forward"})
    *_, infos = env.step(good | {"red_1": np.full(ACTION_DIM, np.nan, np.float32)})
    assert infos["red_1"]["bad_actions"] == ACTION_DIM
    assert infos["red_2"]["bad_actions"] == 0
    *_, infos = env.step(good | {"red_1": np.full(ACTION_DIM, 1e300)})
    assert infos["red_1"]["bad_actions"] == ACTION_DIM
    with pytest.raises(ResetNeeded):
        echelon_env.parallel_env("duel").step({})
    while env.agents:
        env.step(act(env))
    with pytest.raises(ResetNeeded):
        env.step({})
    discrete = echelon_env.parallel_env("duel", action="dict")
    discrete.reset(seed=0)
    good = act(discrete)
    with pytest.raises(ValueError, match=r"action of 'red_0'\['target'\]: expected 0 to 5, got 6"):
        discrete.step(good | {"red_0": good["red_0"] | {"target": 6}})
    with pytest.raises(ValueError, match=r"action of 'red_0': expected the keys"):
        discrete.step(good | {"red_0": good["red_0"] | {"jump": 1}})
    with pytest.raises(ValueError, match=r"action of 'blue_0': expected a mapping"):
        discrete.step(good | {"blue_0": np.zeros(ACTION_DIM, np.float32)})
    discrete.step(good)
    for max_cycles in (0, 2.5, "3", True):
        with pytest.raises(echelon_env.ConfigError, match="max_cycles: expected an integer of at least 1, got"):
            echelon_env.parallel_env("duel", max_cycles=max_cycles)
    for name in ("opponent", "side", "seed", "copy"):
        with pytest.raises(echelon_env.ConfigError, match=f"unexpected keyword argument '{name}'"):
            echelon_env.parallel_env("duel", **{name: 0})
    with pytest.raises(echelon_env.ConfigError, match="unknown render_mode 'rgb_arry'; did you mean 'rgb_array'"):
        echelon_env.parallel_env("duel", render_mode="rgb_arry")


@pytest.mark.parametrize("make", [echelon_env.parallel_env, echelon_env.BattleEnv, echelon_env.BattleVectorEnv])
def test_render_warns_without_a_mode(make):
    env = make("duel")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render.. does nothing without a render mode"):
        assert env.render() is None


def test_without_a_window_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("echelon_env.render.screen._HAS_WINDOW", False)
    with pytest.raises(echelon_env.ConfigError, match=r"pip install 'echelon-env\[render\]'"):
        echelon_env.parallel_env("duel", render_mode="human")


def test_the_name_tells_the_scenario(tmp_path):
    assert str(echelon_env.parallel_env("duel-open")) == "echelon_duel_open_v0"
    assert str(echelon_env.env("duel-open")) == "echelon_duel_open_v0"
    assert str(echelon_env.parallel_env(echelon_env.make_config("duel"))) == "echelon_v0"
    (tmp_path / "raid.toml").write_text('description = "x"\nblue = ["light"]\nred = ["light"]')
    assert echelon_env.env(tmp_path / "raid.toml").metadata["name"] == "echelon_raid_v0"
    for make in (echelon_env.BattleEnv, echelon_env.BattleParallelEnv, echelon_env.BattleVectorEnv, echelon_env.env):
        assert make("duel").metadata["render_fps"] == 4
        assert make("duel", decision_repeat=2).metadata["render_fps"] == 10
    assert echelon_env.BattleEnv.metadata["render_modes"] == ["rgb_array", "ansi", "human"]


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_render_modes(mode):
    env = echelon_env.parallel_env("duel", render_mode=mode)
    env.reset(seed=0)
    env.step(act(env))
    picture = env.render()
    if mode == "rgb_array":
        assert picture.ndim == 3
        assert picture.dtype == np.uint8
    elif mode == "ansi":
        assert "BLUE" in picture.upper()
    else:
        assert picture is None
    env.close()


def test_the_scenarios_are_in_pettingzoos_registry():
    if not hasattr(pettingzoo, "make"):
        return  # PettingZoo before 1.27 has no registry
    env = pettingzoo.make("parallel", "echelon/Skirmish-v0")
    assert env.unwrapped.config == echelon_env.make_config("skirmish")
    pettingzoo.make("aec", "echelon/Duel-v0").reset(seed=0)
