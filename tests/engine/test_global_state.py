"""The global state: each feature against the oracle, for both teams, within its bounds."""

import numpy as np
import pytest

from echelon_env.engine.core import BattleEngine
from echelon_env.layout.observations import Unit, state_streams
from oracles.configs import odd_config, small_config
from oracles.global_state import global_state
from oracles.situations import arranged_engine, brawling_actions
from oracles.stirring import stir
from oracles.world import load

CONFIGS = {"game": small_config(), "odd": odd_config()}
BATTLES = 4


def played(config, decisions=5, seed=3):
    engine, rng = arranged_engine(config, BATTLES, seed=seed), np.random.default_rng(0)
    for _ in range(decisions):
        engine.step(np.stack([brawling_actions(load(engine.state, b, config), rng) for b in range(BATTLES)]))
    return engine


def home_on(engine, target):
    """Add a homing projectile to the first battle, with a mech as its target."""
    weapons = engine.config.catalog.weapons
    number = int(engine.state.battles["num_projectiles"][0])
    missile = engine.state.projectiles[0, number]
    missile["weapon"] = next(i for i, weapon in enumerate(weapons) if weapon.flight == "homing")
    missile["owner"], missile["target"] = engine.num_mechs - 1, target
    missile["x"] = missile["y"] = missile["z"] = missile["reach"] = 5.0
    engine.state.battles["num_projectiles"][0] = number + 1


@pytest.mark.parametrize("name", CONFIGS)
def test_every_feature_matches_its_documented_meaning(name):
    engine, rng = played(CONFIGS[name]), np.random.default_rng(1)
    home_on(engine, 0)
    for battle in range(BATTLES):
        stir(engine.state, battle, engine.config, rng)
    for battle in range(BATTLES):
        world = load(engine.state, battle, engine.config)
        for team in (0, 1):
            expected = global_state(world, team)
            np.testing.assert_allclose(engine.global_state(team)[battle], expected, rtol=1e-5, atol=1e-5)
    units = engine.global_state()[:, state_streams(engine.num_mechs)["units"].part].reshape(-1, len(Unit))
    constant = [unit.name for unit in Unit if np.ptp(units[:, unit]) == 0]
    assert constant == []


@pytest.mark.parametrize("name", CONFIGS)
def test_each_battle_can_have_its_own_team(name):
    engine = played(CONFIGS[name])
    teams = np.arange(BATTLES) % 2
    each = [engine.global_state(int(team))[battle] for battle, team in enumerate(teams)]
    np.testing.assert_array_equal(engine.global_state(teams), each)
    with pytest.raises(ValueError, match=rf"team: expected one, or one per battle \({BATTLES},\), got \(2,\)"):
        engine.global_state([0, 1])


def test_battles_can_be_chosen():
    engine = played(CONFIGS["game"])
    first, second = engine.global_state(0), engine.global_state(1)
    np.testing.assert_array_equal(
        engine.global_state([0, 1, 1], battles=[3, 1, 1]), np.stack([first[3], second[1], second[1]])
    )
    assert engine.global_state(battles=[]).shape == (0, first.shape[1])
    for wrong in ([BATTLES], [-1], [0.5], 0, [[0]]):
        with pytest.raises(ValueError, match=f"battles: expected numbers from 0 to {BATTLES - 1}, got"):
            engine.global_state(battles=wrong)


@pytest.mark.parametrize("team", [0, 1])
def test_room_for_more_mechs_follows_those_of_each_team(team):
    engine = BattleEngine(small_config(blue=("heavy",), red=("scout", "light")), 3, num_threads=2)
    engine.reset(np.arange(3))
    states, own = engine.global_state(team, mechs=6), state_streams(engine.num_mechs)
    low, high = engine.global_state_bounds(6)
    assert ((states >= low) & (states <= high)).all()
    size = len((engine.config.blue, engine.config.red)[team])
    padded, expected = state_streams(6), engine.global_state(team)
    np.testing.assert_array_equal(states[:, padded["clock"].part], expected[:, own["clock"].part])
    units = states[:, padded["units"].part].reshape(3, 2, 3, len(Unit))
    rows = expected[:, own["units"].part].reshape(3, 3, len(Unit))
    np.testing.assert_array_equal(units[:, 0, :size], rows[:, :size])
    np.testing.assert_array_equal(units[:, 1, : 3 - size], rows[:, size:])
    assert not units[:, 0, size:].any()
    assert not units[:, 1, 3 - size :].any()
    np.testing.assert_array_equal(engine.global_state(team, mechs=np.uint8(6)), states)
    for wrong, message in ((2, "at least 4, got 2"), (5, "even number, got 5"), (6.0, "at least 4, got 6.0")):
        with pytest.raises(ValueError, match=f"mechs: expected an .*{message}"):
            engine.global_state(team, mechs=wrong)


def test_each_team_is_first_and_in_the_first_corner_of_its_own_state():
    engine = BattleEngine(small_config(blue=("heavy",), red=("scout", "light")), 6)
    engine.reset(np.arange(6))
    units = state_streams(3)["units"].part
    for team, classes in enumerate(([Unit.IS_HEAVY, Unit.IS_SCOUT, Unit.IS_LIGHT],
                                    [Unit.IS_SCOUT, Unit.IS_LIGHT, Unit.IS_HEAVY])):  # fmt: skip
        rows = engine.global_state(team)[:, units].reshape(6, 3, len(Unit))
        assert all((rows[:, row, feature] == 1).all() for row, feature in enumerate(classes))
        own = rows[:, : (1, 2)[team], [Unit.POSITION_X, Unit.POSITION_Y]]
        assert (own < 0).all()
