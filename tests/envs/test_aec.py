"""The AEC environment does what PettingZoo's conversion of the parallel environment does, call by call."""

import numpy as np
import pettingzoo
import pytest
from pettingzoo.utils import parallel_to_aec, wrappers

from echelon_env import env, opponents, parallel_env

BATTLE = {"scenario": "skirmish", "terrain": {"size": 60}, "max_steps": 40, "maps": 2}


def walk(made, seed):
    """Everything that a loop over a battle between veterans sees."""
    made.reset(seed=seed)
    engine, names = made.unwrapped.engine, made.possible_agents
    player = opponents.make("veteran", 1, engine.config)
    ticks, actions = -1, None
    for agent in made.agent_iter():
        if engine.state.battles["tick"][0] != ticks:
            ticks = engine.state.battles["tick"][0]
            actions = player.act(engine.observations[0].copy())
        observation, reward, terminated, truncated, info = made.last()
        yield (
            agent, observation.tobytes(), reward, terminated, truncated,
            info["alive"], info["episode_statistics"].tobytes(), list(made.agents), dict(made.rewards),
            dict(made.terminations), dict(made.truncations), list(made.infos), made.num_agents,
        )  # fmt: skip
        made.step(None if terminated or truncated else actions[names.index(agent)])
    yield list(made.agents), dict(made.rewards)


@pytest.mark.parametrize("kwargs", [{}, {"dead_agents": "persist", "max_cycles": 25}], ids=["terminate", "persist"])
def test_a_loop_sees_what_the_conversion_shows(kwargs):
    theirs = wrappers.OrderEnforcingWrapper(parallel_to_aec(parallel_env(**BATTLE, **kwargs)))
    ours = env(**BATTLE, **kwargs)
    deaths = 0
    for seed in (4, None):
        for first, second in zip(walk(ours, seed), walk(theirs, seed), strict=True):
            assert first == second
            deaths += len(first) > 2 and (first[3] or first[4])
    assert deaths >= 20
    assert str(ours) == str(theirs)
    assert ours.metadata == theirs.metadata
    assert isinstance(ours, pettingzoo.AECEnv)


def test_calls_before_reset_are_refused():
    made = env("duel")
    for name in ("agents", "agent_selection", "rewards", "terminations", "truncations", "infos", "num_agents"):
        with pytest.raises(AttributeError, match="before reset"):
            getattr(made, name)
    for call in (made.agent_iter, made.state, made.render, lambda: made.step(None), lambda: made.observe("blue_0")):
        with pytest.raises(AssertionError, match="reset"):
            call()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        made.nothing  # noqa: B018


def test_wrong_calls_are_refused(caplog):
    made = env("duel", max_steps=1)
    made.reset(seed=0)
    with pytest.raises(AssertionError, match="need to call step"):
        list(made.agent_iter())
    assert list(made.agent_iter(0)) == []
    idle = np.zeros(made.action_space("blue_0").shape, np.float32)
    for agent in ("blue_0", "red_0"):  # each in its own step, which it can repeat
        for wrong in (idle[1:], None, "forward"):
            with pytest.raises(ValueError, match=f"action of '{agent}'"):
                made.step(wrong)
        assert made.agent_selection == agent
        if agent == "blue_0":
            made.step(idle)
    made.step(idle)
    assert made.truncations == {"blue_0": True, "red_0": True}
    with pytest.raises(AssertionError, match="expected the action None"):
        made.step(idle)
    made.step(None)
    made.step(None)
    assert made.agents == []
    made.step(None)
    assert "step() called after all agents" in caplog.text
