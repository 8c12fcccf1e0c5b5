import math

import numpy as np
import pytest
from scipy import stats

from echelon_env import (
    BattleEngine,
    BattleEnv,
    ConfigError,
    make_config,
    opponents,
)
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Objective, Self
from echelon_env.opponents import LEVELS, Mixture
from opponents.contests import recorded, think

CONFIG = make_config("skirmish")
WEIGHTS = {"trivial": 1, "novice": 4, "expert": 3}


def first_observations(battles, seed=0):
    """The first observation of one mech in each battle, each with its own zone."""
    seen = np.zeros((battles, OBSERVATION_DIM), np.float32)
    seen[:, Self.ALIVE] = 1.0
    seen[:, STREAMS["objective"].start + Objective.RADIUS] = np.random.default_rng(seed).random(battles)
    return seen


def counts(levels):
    return np.array([(levels == level).sum() for level in WEIGHTS])


def share(battles):
    return np.array([weight / 8 * battles for weight in WEIGHTS.values()])


def test_levels_are_drawn_by_their_weights_over_battles_on_one_map():
    mixture, seen, levels = Mixture(WEIGHTS, 0, CONFIG), first_observations(1), []
    for _ in range(1000):
        mixture.reset(np.ones(1, bool))
        mixture.act(seen)
        levels.append(mixture.levels[0])
    assert stats.chisquare(counts(np.array(levels)), share(1000)).pvalue > 0.001
    pairs = [levels[i] == levels[i + 1] for i in range(999)]  # independent: (1 + 16 + 9) / 64 of them
    assert abs(np.mean(pairs) - 26 / 64) < 0.06


def test_each_battle_is_played_just_as_its_level_plays():
    mixture, seen = Mixture(WEIGHTS, 3, CONFIG), recorded()
    actions = think(mixture, seen)
    for level in LEVELS:
        rows = mixture.levels == level
        alone = think(opponents.make(level, 3, CONFIG), seen)
        np.testing.assert_array_equal(actions[:, rows], alone[:, rows])


def test_a_team_keeps_one_level_when_its_mechs_die():
    engine = BattleEngine("battle", 12)
    engine.reset(range(12))
    mixture = Mixture(WEIGHTS, 4, engine.config)
    seen = engine.observations.reshape(-1, engine.observation_dim).copy()
    mixture.act(seen)
    teams = mixture.levels.reshape(12, 2, 10)
    assert (teams == teams[..., :1]).all()
    assert len(set(teams[..., 0].ravel())) == 3
    seen[::3] = 0.0
    mixture.act(seen)
    np.testing.assert_array_equal(mixture.levels.reshape(12, 2, 10), teams)


def test_new_weights_count_from_the_next_battle_on():
    mixture, seen = Mixture({"novice": 1}, 0, CONFIG), first_observations(20)
    assert mixture.levels.tolist() == []
    mixture.act(seen)
    mixture.weights = {"expert": 2.5, "novice": 0}
    mixture.act(seen)
    assert set(mixture.levels) == {"novice"}
    mixture.reset(np.arange(20) < 5)
    assert mixture.levels.tolist() == [""] * 5 + ["novice"] * 15
    mixture.act(seen)
    assert mixture.levels.tolist() == ["expert"] * 5 + ["novice"] * 15
    assert dict(mixture.weights) == {"expert": 2.5, "novice": 0.0}
    with pytest.raises(TypeError):
        mixture.weights["novice"] = 1.0


BOTH = {"trivial": 1, "expert": 1}


def episode(env, **reset):
    """Observations of an environment over 10 s."""
    rng = np.random.default_rng(0)
    shown = [env.reset(**reset)[0]]
    shown += [env.step(rng.uniform(-1, 1, env.action_space.shape).astype(np.float32))[0] for _ in range(40)]
    return np.array(shown).tobytes()


def test_a_seeded_reset_starts_the_same_battle_against_the_same_level():
    env = BattleEnv("duel", opponent=BOTH, observability="full")
    assert len({episode(env, seed=5) for _ in range(6)}) == 1
    levels = env._battles.battles._players["opponent"]
    drawn = [(env.reset(), env.step(env.action_space.sample()), levels.levels[0])[-1] for _ in range(12)]
    assert set(drawn) == {"trivial", "expert"}
    follows = [[episode(env, **reset) for reset in ({"seed": 5}, {}, {}, {})] for _ in range(3)]
    assert follows[0] == follows[1] == follows[2]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"novise": 1}, "unknown opponent 'novise'; did you mean 'novice'"),
        ({3: 1}, "unknown opponent 3"),
        ({}, "weights: expected a mapping of opponents to numbers, got {}"),
        ({"novice": -1}, "weights: expected a finite number of at least 0 for 'novice', got -1"),
        ({"novice": math.inf}, "got inf"),
        ({"novice": math.nan}, "got nan"),
        ({"novice": True}, "got True"),
        ({"novice": "1"}, "got '1'"),
        ({"novice": 0, "expert": 0.0}, "weights: expected a finite sum above 0"),
        ({"novice": 1e308, "expert": 1e308}, "weights: expected a finite sum above 0"),
        ("novice", "weights: expected a mapping of opponents to numbers, got 'novice'"),
    ],
)
def test_impossible_weights_are_refused_and_change_nothing(weights, message):
    mixture = Mixture({"novice": 1}, 0, CONFIG)
    with pytest.raises(ValueError, match=message):
        mixture.weights = weights
    assert dict(mixture.weights) == {"novice": 1.0}
    with pytest.raises(ValueError, match=message):
        Mixture(weights, 0, CONFIG)


def test_a_battle_in_which_a_class_does_not_observe_the_zone_is_refused():
    blind = make_config("pair-city", catalog={"mech_classes": {"light": {"observes_zone": False}}})
    with pytest.raises(ConfigError, match="expected one opponent, as these classes do not observe it: light"):
        Mixture({"novice": 1.0, "expert": 1.0}, 0, blind)
