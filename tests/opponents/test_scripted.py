import numpy as np
import pytest

from echelon_env import BattleEngine, make_config, opponents
from echelon_env.actions import ACTION_DIM, Action
from echelon_env.observations import OBSERVATION_DIM, STREAMS
from echelon_env.opponents import LEVELS, Policy
from playing import scripted_actions


class Still:
    def reset(self, mask):
        pass

    def act(self, observations):
        return np.zeros((len(observations), ACTION_DIM), np.float32)


class Noise(Still):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def act(self, observations):
        return self.rng.uniform(-1, 1, (len(observations), ACTION_DIM)).astype(np.float32)


def wins(scenario, first, second, battles=40, **overrides):
    """Wins and losses of `first`, which plays every map from both sides."""
    engine = BattleEngine(scenario, battles, time_limit="terminate", **overrides)
    team = len(engine.config.blue)
    seeds = np.repeat(np.arange(battles // 2) + 10_000, 2)
    observations = engine.reset(seeds)
    odd = np.arange(battles) % 2 == 1
    everyone = np.ones(battles * team, bool)
    for player in (first, second):
        player.reset(everyone)
    actions = np.zeros((battles, 2 * team, ACTION_DIM), np.float32)
    while not engine.battle_over.all():
        own = np.where(odd[:, None, None], observations[:, team:], observations[:, :team])
        other = np.where(odd[:, None, None], observations[:, :team], observations[:, team:])
        a = first.act(own.reshape(-1, own.shape[-1])).reshape(battles, team, -1)
        b = second.act(other.reshape(-1, own.shape[-1])).reshape(battles, team, -1)
        actions[:, :team] = np.where(odd[:, None, None], b, a)
        actions[:, team:] = np.where(odd[:, None, None], a, b)
        observations, *_ = engine.step(actions)
    won = engine.winner == odd
    lost = engine.winner == ~odd
    return won.sum(), lost.sum()


@pytest.mark.parametrize("scenario", ["duel", "skirmish"])
@pytest.mark.parametrize("passive", [Still, Noise])
def test_trivial_beats_doing_nothing_and_chance(scenario, passive):
    won, _ = wins(scenario, opponents.make("trivial"), passive())
    assert won >= 36  # of 40


@pytest.mark.parametrize("scenario", ["duel", "skirmish"])
def test_novice_beats_trivial(scenario):
    won, _ = wins(scenario, opponents.make("novice"), opponents.make("trivial"))
    assert won >= 28  # of 40


@pytest.mark.parametrize("level", LEVELS)
def test_a_mech_acts_from_its_own_row_and_memory(level):
    """Scrambling every other row changes nothing in a row's action."""
    engine = BattleEngine("skirmish", 1)
    engine.reset([2])
    honest, watched = opponents.make(level, 3), opponents.make(level, 3)
    noise = np.random.default_rng(0)
    for _ in range(120):
        rows = engine.out.observations[0]
        scrambled = noise.uniform(-1, 1, rows.shape).astype(np.float32)
        scrambled[4] = rows[4]
        action = honest.act(rows)
        np.testing.assert_array_equal(watched.act(scrambled)[4], action[4])
        engine.step(action[None])


@pytest.mark.parametrize("level", LEVELS)
def test_actions_are_valid_deterministic_and_leave_observations_alone(level):
    engine = BattleEngine("battle", 2)
    engine.reset([1, 2])
    players, twins = ((opponents.make(level, 0), opponents.make(level, 1)) for _ in range(2))
    for _ in range(60):
        before = engine.out.observations.copy()
        actions = scripted_actions(engine, players)
        np.testing.assert_array_equal(engine.out.observations, before)
        np.testing.assert_array_equal(actions, scripted_actions(engine, twins))
        assert actions.dtype == np.float32
        assert np.isfinite(actions).all()
        assert np.abs(actions).max() <= 1 + 1e-6
        engine.step(actions)


def test_a_reset_forgets_only_the_rows_asked_for():
    player, fresh = opponents.make("trivial", 5), opponents.make("trivial", 5)
    rows = np.zeros((2, OBSERVATION_DIM), np.float32)
    rows[:, 0] = 1.0
    rows[:, STREAMS["contacts"].start :] = 1.0  # something stands everywhere, enemies too
    for _ in range(13):
        player.act(rows)
    player.reset(np.array([True, False]))
    for _ in range(40):
        old, new = player.act(rows), fresh.act(rows)
        np.testing.assert_array_equal(old[0], new[0])
    fires = {tuple(player.act(rows)[:, Action.PRIMARY]) for _ in range(64)}
    assert len(fires) > 2  # the two rows' clocks differ


def test_the_dead_do_nothing():
    rows = np.ones((3, OBSERVATION_DIM), np.float32)
    rows[1] = 0.0
    for level in LEVELS:
        assert not opponents.make(level).act(rows)[1].any()


def test_levels_are_policies_with_names():
    assert all(isinstance(opponents.make(level), Policy) for level in LEVELS)
    with pytest.raises(ValueError, match=r"unknown opponent 'trival'; did you mean 'trivial'\?"):
        opponents.make("trival")
    with pytest.raises(ValueError, match=rf"observations: expected shape \(rows, {OBSERVATION_DIM}\), got \(3, 5\)"):
        opponents.make("novice").act(np.zeros((3, 5), np.float32))


@pytest.mark.parametrize("cell", [0.5, 1.5, 3.0])
def test_players_read_the_ego_map_at_the_configured_scale(cell):
    player = opponents.make("novice", 0, make_config("duel", sensors={"terrain_cell": cell}))
    straight_ahead = player._navigator._cells[0, :, 1]
    expected = [min(10, 5 + int(np.rint(metres / cell))) * 11 + 5 for metres in (1.5, 3.0, 4.5, 6.0)]
    assert straight_ahead.tolist() == expected
