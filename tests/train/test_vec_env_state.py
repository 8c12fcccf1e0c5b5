"""A restored environment continues exactly like the original."""

import numpy as np
import pytest

from echelon_env import ConfigError, MapPool, NotResetError, make_config, opponents
from echelon_env.evaluate import EVALUATION_SEEDS
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import FunctionPolicy
from echelon_train.config.train import battle_config
from echelon_train.vec_env import BattleVecEnv

BEFORE, AFTER = 13, 24
MIXTURE = {"novice": 1.0, "expert": 2.0}
OPPONENTS = {
    "novice": lambda config: "novice",
    "expert": lambda config: "expert",
    "self-play": lambda config: "expert",
    "mixture": lambda config: MIXTURE,
    "handicap": lambda config: opponents.Handicap(
        opponents.make(MIXTURE, 3, config), config, 3, reaction_delay=0.5, aim_error=0.2, fire_rate=0.5
    ),
}


def battle(scenario="duel", **overrides):
    return make_config(battle_config(scenario), **({"max_steps": 9} | overrides))


def make_env(opponent="novice", scenario="duel", *, seed=5, battles=3, config=None, **arguments):
    config = config or battle(scenario)
    return BattleVecEnv(config, battles, opponent=OPPONENTS[opponent](config), seed=seed, **arguments)


def actions_of(env, first, last):
    """Random actions of steps first to last - 1."""
    noise = np.random.default_rng(7)
    walk = noise.uniform(-1, 1, (last, env.num_envs, ACTION_DIM)).astype(np.float32)
    return walk[first:]


def walk(env, first, last):
    """All that the steps return, as bytes and plain values, except the wall-clock time."""
    course = []
    for actions in actions_of(env, first, last):
        observations, rewards, dones, infos = env.step(actions)
        course.append((observations.tobytes(), rewards.tobytes(), dones.tobytes(), env.battles.side.tobytes()))
        for info in infos:
            if info:
                final, episode = info["terminal_observation"], info["episode"]
                rest = {name: value for name, value in info.items() if name not in ("terminal_observation", "episode")}
                course.append((final.tobytes(), episode["r"], episode["l"], rest))
    return course


def hashes(env):
    pool = env.battles.engine.maps
    return None if pool is None else pool.content_hashes


def assert_same_state(first, second):
    assert first.keys() == second.keys()
    assert [name for name in first if first[name].tobytes() != second[name].tobytes()] == []


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes")
    for number, terrain in enumerate(MapPool(battle(), [31, 32])):
        (folder / f"{number}.json").write_text(terrain.recipe.to_json())
    return folder


CASES = [
    ("self-play", "skirmish", 3, 1, 1),
    ("novice", "skirmish", None, 2, 2),
    ("expert", "skirmish", 2, 2, 1),
    ("expert", "duel", "recipes", 1, 2),
    ("mixture", "skirmish", 3, 2, 2),
    ("handicap", "skirmish", 3, 1, 1),
]


@pytest.mark.parametrize(("opponent", "scenario", "maps", "regenerate", "num_threads"), CASES)
def test_a_restored_environment_continues_identically(
    opponent, scenario, maps, regenerate, num_threads, recipes, tmp_path
):
    """Each battle ends twice after the state is saved, and is then in its middle."""
    arguments = {"maps": recipes if maps == "recipes" else maps, "regenerate": regenerate}
    arguments["self_play"] = 2 if opponent == "self-play" else 0

    def make():
        return make_env(opponent, scenario, num_threads=num_threads, **arguments)

    env = make()
    env.reset()
    walk(env, 0, BEFORE)
    state, before = env.state_arrays(), hashes(env)
    expected_course = walk(env, BEFORE, BEFORE + AFTER)
    assert sum(entry[2] == b"\x01" * env.num_envs for entry in expected_course if len(entry) == 4 and entry[2]) >= 2

    np.savez(tmp_path / "state.npz", **state)
    again = make()
    with np.load(tmp_path / "state.npz", allow_pickle=False) as kept:
        observations = again.restore_arrays(dict(kept))
    own = again.battles.observations
    assert observations[: own.shape[0] * own.shape[1]].tobytes() == own.tobytes()
    assert_same_state(again.state_arrays(), state)
    assert hashes(again) == before
    assert walk(again, BEFORE, BEFORE + AFTER) == expected_course
    assert hashes(again) == hashes(env)
    assert_same_state(again.state_arrays(), env.state_arrays())

    other = make()
    other.reset()
    assert walk(other, BEFORE, BEFORE + AFTER) != expected_course


def test_battles_with_damaged_terrain_continue_identically():
    """A longer battle at close range: voxels break, mechs burn and die, projectiles are in flight."""
    config = battle("skirmish", max_steps=300, terrain={"size": 56})
    learner = opponents.make("expert", 1, config)

    def fight(env, observations, steps):
        course = []
        for _ in range(steps):
            observations, rewards, _, _ = env.step(learner.act(observations))
            course.append((observations.tobytes(), rewards.tobytes()))
        return course

    env = make_env("expert", config=config, battles=2)
    observations = env.reset()
    for _ in range(200):
        observations, _, dones, _ = env.step(learner.act(observations))
        state = env.battles.engine.state
        flying = state.battles["num_projectiles"].all()
        if flying and state.voxel_damage.any() and (state.mechs["alive"] == 0).any() and not dones.any():
            break
    else:
        raise AssertionError("no mech was hit")
    arrays, player_state = env.state_arrays(), learner.state_arrays()
    assert len(arrays["battles.engine.voxels_at"]) > 0
    expected_course = fight(env, observations, 60)
    again = make_env("expert", config=config, battles=2)
    observations = again.restore_arrays(arrays)
    learner.restore_arrays(player_state, again.num_envs)
    assert fight(again, observations, 60) == expected_course
    assert_same_state(again.state_arrays(), env.state_arrays())


def test_arrays_are_numeric_copies():
    env = make_env("handicap", maps=3)
    env.reset()
    walk(env, 0, 3)
    state = env.state_arrays()
    assert all(array.dtype.names is None and array.dtype.kind in "biuf" for array in state.values())
    kept = {name: array.copy() for name, array in state.items()}
    walk(env, 3, 12)
    assert_same_state(state, kept)
    again = make_env("handicap", maps=3)
    again.restore_arrays(state)
    walk(again, 3, 12)
    assert_same_state(state, kept)


def test_rewards_and_the_run_seed_are_part_of_the_state():
    env = make_env(maps=3)
    env.seed(17)
    env.reset()
    rewards = battle(rewards={"zone": 7.0, "team_spirit": 0.25}).rewards
    env.set_rewards(rewards)
    again = make_env(maps=3)
    again.restore_arrays(env.state_arrays())
    assert again.battles.config.rewards == rewards
    assert again.seed() == [17] * 3
    assert walk(again, 0, 20) == walk(env, 0, 20)


def replace(name, value):
    """Replace an array of a state; None removes it."""

    def change(state):
        if value is None:
            del state[name]
        else:
            state[name] = value(state[name]) if callable(value) else value

    return change


def with_entry(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


INVALID = {
    "an array is missing": (replace("returns", None), r"environment: .* missing: \['returns'\]"),
    "of the engine": (replace("battles.engine.bonus", np.zeros(1)), r"unknown: \['bonus'\]"),
    "of the opponent": (replace("battles.opponent.level", None), r"Scripted.* missing: \['level'\]"),
    "other batch": (replace("returns", np.zeros(4)), r"'returns': expected \(3\) float64, got \(4,\) float64"),
    "no returns": (replace("returns", with_entry(0, np.nan)), "finite returns"),
    "seed of evaluation": (replace("run", lambda a: np.array([EVALUATION_SEEDS.start, 1])), "kept for evaluation"),
    "regenerate": (replace("run", lambda a: np.array([5, 9])), "regenerate: expected 1, got 9"),
    "sides": (replace("battles.side", with_entry(0, 2)), "side: expected 0 or 1"),
    "other level": (replace("battles.opponent.level", with_entry(0, 4)), "level: expected 'novice', got 'expert'"),
    "other pool": (replace("battles.engine.pool_seeds", with_entry(0, 6)), "expected those of MapPool.3 maps"),
    "other layout": (replace("battles.engine.layout", with_entry(0, 6)), "another version of echelon-env"),
    "other map": (replace("battles.engine.map_hashes", with_entry((1, 0), 6)), "battle 1: recipe of seed"),
    "no config": (replace("battles.engine.config", with_entry(0, 6)), "'config': expected a battle's configuration"),
    "place beyond": (replace("battles.engine.events_at", np.array([10**9])), r"events: expected as many places"),
    "gamma": (
        replace("battles.engine.reward_weights", with_entry(-2, 0.5)),
        r"rewards.gamma: expected [\d.]+, got 0.5",
    ),
    "weight": (replace("battles.engine.reward_weights", with_entry(0, np.inf)), "rewards.approach.: expected a number"),
    "made": (replace("battles.engine.made_seeds", with_entry(0, 6)), "seed 6 is none of the pool's 3"),
}


@pytest.fixture(scope="module")
def pair():
    """An environment, and one whose battles are at another step."""
    made = make_env(maps=3), make_env(maps=3)
    for each, steps in zip(made, (4, 2), strict=True):
        each.reset()
        walk(each, 0, steps)
    return made


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_state_changes_nothing(case, pair):
    change, message = INVALID[case]
    env, target = pair
    state, before, played = env.state_arrays(), target.state_arrays(), hashes(target)
    change(state)
    with pytest.raises(ValueError, match=message):
        target.restore_arrays(state)
    assert hashes(target) == played
    assert_same_state(target.state_arrays(), before)


def test_the_state_of_another_configuration_is_rejected():
    stages = [battle("duel"), battle("duel-open")]
    states = []
    for config in stages:
        env = make_env(config=config)
        env.reset()
        states.append(env.state_arrays())
    for config, own, other in ((stages[0], *states), (stages[1], *states[::-1])):
        env = make_env(config=config)
        with pytest.raises(ValueError, match=r"of another configuration: [\w.]+: expected .+, got "):
            env.restore_arrays(other)
        env.restore_arrays(own)
        assert_same_state(env.state_arrays(), own)


def test_errors_name_players_that_cannot_be_saved():
    def forward(observations):
        return np.zeros((len(observations), ACTION_DIM), np.float32)

    env = BattleVecEnv(battle(), 2, opponent=FunctionPolicy(forward))
    env.reset()
    with pytest.raises(ConfigError, match=r"opponent: FunctionPolicy\(.*forward\) cannot be resumed"):
        env.state_arrays()
    handicapped = opponents.Handicap(FunctionPolicy(forward), battle())
    env = BattleVecEnv(battle(), 2, opponent=handicapped)
    env.reset()
    with pytest.raises(ConfigError, match=r"policy: FunctionPolicy\(.*forward\) cannot be resumed"):
        env.state_arrays()


def test_there_is_no_state_before_the_first_reset():
    with pytest.raises(NotResetError, match="never been reset"):
        make_env().state_arrays()
