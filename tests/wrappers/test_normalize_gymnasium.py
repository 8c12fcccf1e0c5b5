"""The normalizing wrappers of Gymnasium's environments: single, Dict and vector, in every autoreset mode."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import iterate
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echelon_env.wrappers import single, vector
from wrappers.test_normalize import saved

MODES = list(AutoresetMode)
WRAPPERS = {"NormalizeObservations": {"clip": 5.0}, "NormalizeRewards": {"clip": 5.0, "gamma": 0.9}}
numbers = st.floats(-1000, 1000, width=32)


class Scripted(gymnasium.Env):
    """Episodes of given lengths with given observations (T, 2), rewards (T,) and flags `alive` (T,), one after another.

    With `space` "dict" an observation has the vector, rows of which only those with a one in a mask count, an action
    mask and a flag.
    """

    def __init__(self, script, space="box"):
        self.script, self.time, self.episode = script, -1, -1
        box = Box(-np.inf, np.inf, (2,), np.float32)
        rows = {"near": Box(-np.inf, np.inf, (3, 2), np.float32), "near_mask": Box(0, 1, (3,), np.float32)}
        parts = {"vector": box, "near": Dict(rows), "action_mask": MultiBinary(4), "flag": Box(0, 1, (1,), np.int8)}
        self.observation_space = box if space == "box" else Dict(parts)
        self.action_space = Discrete(4)

    def observe(self):
        row = self.script["observations"][self.time]
        info = {"alive": bool(self.script["alive"][self.time]), "time": self.time}
        if isinstance(self.observation_space, Box):
            return row, info
        near = np.stack([row, np.full(2, 1e9, np.float32), -row])
        mask = np.array([1, 0, self.time % 2], np.float32)
        flag, choices = np.ones(1, np.int8), np.ones(4, np.int8)
        return {
            "vector": row, "near": {"near": near, "near_mask": mask}, "action_mask": choices, "flag": flag
        }, info  # fmt: skip

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = (self.time + 1) % len(self.script["alive"])
        self.episode = (self.episode + 1) % len(self.script["lengths"])
        self.left = self.script["lengths"][self.episode]
        return self.observe()

    def step(self, action):
        self.time = (self.time + 1) % len(self.script["alive"])
        self.left -= 1
        over = self.left == 0
        return *self.observe()[:1], float(self.script["rewards"][self.time]), over, False, self.observe()[1]


@st.composite
def scripts(draw):
    length = draw(st.integers(2, 8))
    return {
        "observations": draw(arrays(np.float32, (length, 2), elements=numbers)),
        "rewards": draw(arrays(np.float64, length, elements=numbers)),
        "alive": draw(arrays(np.bool_, length)),
        "lengths": draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    }


def some_scripts(count=3, length=11):
    noise = np.random.default_rng(0)
    return [
        {
            "observations": (3 + noise.normal(size=(length, 2))).astype(np.float32),
            "rewards": noise.normal(size=length),
            "alive": noise.random(length) < 0.8,
            "lengths": [2, 1, 4, 3],
        }
        for _ in range(count)
    ]


def make(scripts, mode, name, space="box", **arguments):
    """A vector environment of the scripts with a wrapper."""
    envs = SyncVectorEnv([lambda script=script: Scripted(script, space) for script in scripts], autoreset_mode=mode)
    return getattr(vector, name)(envs, **WRAPPERS[name] | arguments)


def play(envs, mode, episodes):
    """Results of steps until every sub-environment has ended so many episodes, each with those reset before it."""
    started, done = np.ones(envs.num_envs, np.bool_), np.zeros(envs.num_envs, np.bool_)
    ended = np.zeros(envs.num_envs, np.int64)
    yield started, envs.reset()
    while ended.min() < episodes:
        if mode == AutoresetMode.DISABLED and done.any():
            yield done, envs.reset(options={"reset_mask": done.copy()})
        result = envs.step(np.zeros(envs.num_envs, np.int64))
        started = done if mode == AutoresetMode.NEXT_STEP else np.zeros_like(done)
        done = result[2] | result[3]
        ended += done
        yield started, result


def scaled(values, samples, clip=5.0, center=True):
    samples = np.reshape(samples, (len(samples), *np.shape(values)[1:])).astype(np.float64)
    var = samples.var(axis=0) if len(samples) > 1 else np.ones(samples.shape[1:])
    mean = samples.mean(axis=0) if center and len(samples) else 0
    return np.clip((values - mean) / np.sqrt(var + 1e-8), -clip, clip), var


@given(st.lists(scripts(), min_size=1, max_size=2), st.sampled_from(MODES), st.integers(1, 2))
def test_observations_equal_the_oracle(scripts, mode, episodes):
    """The rows that count are those on which an agent acts and is alive, each once, in every mode."""
    envs, raw = make(scripts, mode, "NormalizeObservations"), make(scripts, mode, "NormalizeObservations").env
    rows = []
    for (started, (observations, *rest)), (_, (plain, *_, infos)) in zip(
        play(envs, mode, episodes), play(raw, mode, episodes), strict=True
    ):
        done = np.zeros(len(scripts), np.bool_) if len(rest) == 1 else rest[1] | rest[2]
        counts = started if len(rest) == 1 else ~done | (mode == AutoresetMode.SAME_STEP)
        alive = np.where(infos.get("_alive", True), infos.get("alive", True), True)
        rows += list(plain[counts & alive])
        expected, var = scaled(plain, rows)
        expected = np.where((plain == 0) & ~alive[:, None], 0, expected)
        if np.min(var) > 1e-3:  # or else rounding is magnified
            np.testing.assert_allclose(observations, expected, rtol=1e-4, atol=1e-3)
            for index in np.flatnonzero(infos.get("_final_obs", [])):
                final, alive = infos["final_obs"][index], infos["final_info"]["alive"][index]
                expected = np.where((final == 0) & ~alive, 0, scaled(final[None], rows)[0][0])
                np.testing.assert_allclose(rest[-1]["final_obs"][index], expected, rtol=1e-4, atol=1e-3)
        assert envs.observation_space.contains(observations) and observations.dtype == np.float32
    assert envs.moments.count == len(rows)
    if rows:
        np.testing.assert_allclose(envs.moments.mean, np.mean(rows, axis=0, dtype=np.float64), rtol=1e-9, atol=1e-6)


@given(st.lists(scripts(), min_size=1, max_size=2), st.sampled_from(MODES), st.integers(1, 2), st.floats(0, 1))
def test_rewards_equal_the_oracle(scripts, mode, episodes, gamma):
    envs = make(scripts, mode, "NormalizeRewards", gamma=gamma)
    raw = make(scripts, mode, "NormalizeRewards").env
    samples, returns, alive = [], np.zeros(len(scripts)), np.ones(len(scripts), np.bool_)
    for (started, result), (_, plain) in zip(play(envs, mode, episodes), play(raw, mode, episodes), strict=True):
        infos = plain[-1]
        if len(plain) == 5:
            returns = np.where(started, 0, gamma * returns + plain[1])
            samples += list(returns[alive & ~started])
            expected, var = scaled(plain[1], samples, center=False)
            if var > 1e-3:
                np.testing.assert_allclose(result[1], expected, rtol=1e-6)
            assert (result[1][started] == 0).all()
            returns[plain[2] | plain[3]] = 0
        alive = np.where(infos.get("_alive", True), infos["alive"], alive)
    assert envs.moments.count == len(samples)
    assert not samples or envs.moments.mean == pytest.approx(np.mean(samples), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("space", ["box", "dict"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", list(WRAPPERS))
def test_single_and_vector_environments_have_the_same_statistics(tmp_path, name, mode, space):
    """So a file of one is a file of the other."""
    (script,) = some_scripts(1)
    env, envs = getattr(single, name)(Scripted(script, space), **WRAPPERS[name]), make([script], mode, name, space)
    list(play(envs, mode, 6))
    for _ in range(6):
        env.reset()
        while not env.step(0)[2]:
            pass
    if mode == AutoresetMode.SAME_STEP and name == "NormalizeObservations":
        env.reset()  # the vector environment has done it
    moments = env.moments["vector"] if isinstance(env.moments, dict) else env.moments
    assert moments.count > 10 and saved(env) == saved(envs)
    envs.save(tmp_path / "statistics.json")
    loaded = getattr(single, name)(Scripted(script, space), **WRAPPERS[name])
    loaded.load(tmp_path / "statistics.json")
    assert saved(loaded) == saved(envs)
    again = make([script], mode, name, space)
    again.load(tmp_path / "statistics.json")
    (row,) = iterate(again.observation_space, again.reset()[0])
    assert data_equivalence(loaded.reset()[0], row, exact=True)


@pytest.mark.parametrize("mode", MODES)
def test_rows_without_a_mark_and_masks_are_not_normalised(mode):
    envs = make(some_scripts(), mode, "NormalizeObservations", "dict")
    flat = make(some_scripts(), mode, "NormalizeObservations", "box")
    for (_, result), (_, boxes) in zip(play(envs, mode, 3), play(flat, mode, 3), strict=True):
        observations = [(result[0], boxes[0])]
        infos = result[-1]
        for index in np.flatnonzero(infos.get("_final_obs", [])):
            final = infos["final_obs"][index]
            assert envs.single_observation_space.contains(final)
            observations.append((final, boxes[-1]["final_obs"][index]))
        for observation, box in observations:
            np.testing.assert_array_equal(observation["vector"], box)
            near, mask = observation["near"]["near"], observation["near"]["near_mask"]
            assert (near[mask == 0] == 0).all() and (near[mask == 1] != 0).all()
            assert (observation["action_mask"] == 1).all() and (observation["flag"] == 1).all()
    assert envs.observation_space.contains(result[0])
    moments = envs.moments["near"]["near"]
    assert moments.shape == (2,) and flat.moments.count < moments.count < 2 * flat.moments.count
    assert envs.moments["action_mask"] is None and envs.moments["near"]["near_mask"] is None


def test_a_partial_reset_counts_what_it_starts():
    envs = make(some_scripts(), AutoresetMode.DISABLED, "NormalizeObservations")
    first, _ = envs.reset()
    count, mask = envs.moments.count, np.array([False, True, False])
    again, infos = envs.reset(options={"reset_mask": mask})
    assert envs.moments.count == count + infos["alive"][1] and (again[1] != first[1]).all()


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("name", list(WRAPPERS))
def test_gymnasium_accepts_them(name):
    env = getattr(single, name)(gymnasium.make("echelon/DuelOpen-v1", max_steps=5, observation="dict"), clip=3.0)
    env.freeze()  # so that it is deterministic
    check_env(env, skip_render_check=True)
    again = gymnasium.make(env.spec)
    assert type(again) is type(env) and again.observation_space == env.observation_space
    envs = getattr(vector, name)(gymnasium.make_vec("echelon/DuelOpen-v1", 2, max_steps=5))
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP and envs.spec.id == "echelon/DuelOpen-v1"


@pytest.mark.parametrize("name", WRAPPERS)
def test_other_environments_are_refused(name):
    one = Scripted(some_scripts(1)[0])
    with pytest.raises(TypeError, match=r"Expected env to be a `gymnasium\.Env` but got .*SyncVectorEnv"):
        getattr(single, name)(SyncVectorEnv([lambda: one]))
    with pytest.raises(TypeError, match=r"Expected env to be a `gymnasium\.vector\.VectorEnv` but got .*Scripted"):
        getattr(vector, name)(one)
