import copy
import hashlib
import pickle
import threading
from collections import Counter

import numpy as np
import pytest

from echelon_env import BattleEngine, ConfigError, NotResetError, opponents
from echelon_env.config.battle import PACK
from echelon_env.engine import state as st
from support.playing import record_battle, scripted_actions

SCENARIO = {"scenario": "skirmish", "terrain": {"size": 60}, "time_limit": "terminate"}
SEEDS = (37, 42)


def digest(engine: BattleEngine, b: int) -> bytes:
    """Hash of a battle's complete state and outputs."""
    h = hashlib.sha256()
    for array in (*engine.snapshot().values(), engine.observations):
        h.update(np.ascontiguousarray(array[b]).tobytes())
    return h.digest()


@pytest.fixture(scope="module")
def recorded():
    """Two battles in a row on one engine: their actions, the hash after every decision, and the kinds of events."""
    engine = BattleEngine(num_battles=1, **SCENARIO)
    actions = {seed: record_battle(engine, seed) for seed in SEEDS}
    digests, happened = [], Counter()
    for seed in SEEDS:
        engine.reset([seed])
        digests.append(digest(engine, 0))
        for action in actions[seed]:
            engine.step(action[None])
            digests.append(digest(engine, 0))
            happened.update(st.EVENT_KINDS[kind] for kind in engine.events(0)["kind"])
        assert engine.battle_over[0]
    return actions, digests, happened


def test_the_recorded_battles_contain_every_frequent_event(recorded):
    _, digests, happened = recorded
    assert set(happened) >= set(st.EVENT_KINDS) - {"fall", "rise", "legged"}, happened
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("num_battles", "position", "num_threads"), [(1, 0, 1), (1, 0, 2), (64, 0, 1), (64, 37, 2), (64, 63, 2)]
)
def test_same_seed_and_actions_give_the_same_bytes(recorded, num_battles, position, num_threads):
    actions, digests, _ = recorded
    engine = BattleEngine(num_battles=num_battles, num_threads=num_threads, **SCENARIO)
    noise = np.random.default_rng(position)
    mask = np.zeros(num_battles, bool)
    mask[position] = True
    seeds = noise.integers(2**63, size=num_battles, dtype=np.uint64)
    seeds[position] = SEEDS[0]
    engine.reset(seeds)
    expected = iter(digests)
    batch = noise.uniform(-1, 1, (num_battles, engine.num_mechs, engine.action_dim)).astype(np.float32)
    for seed in SEEDS:
        seeds[position] = seed
        if seed != SEEDS[0]:
            engine.reset(seeds, mask)
        assert digest(engine, position) == next(expected)
        for action in actions[seed]:
            batch[position] = action
            engine.step(batch)
            assert digest(engine, position) == next(expected)
    engine.close()


def test_swapping_the_colours_swaps_only_the_labels():
    """The same corners, positions and actions with exchanged colours give the same battle."""
    engine = BattleEngine(num_battles=2, **SCENARIO)
    engine.reset([5, 5])
    team = len(engine.config.blue)
    swap = np.r_[team : 2 * team, 0:team]
    state = engine.state
    state.mechs[1] = state.mechs[0][swap]
    state.mechs["team"][1] = 1 - state.mechs["team"][1]
    state.teams[1] = state.teams[0][::-1]
    state.battles["first_team"][1] = 1 - state.battles["first_team"][0]
    state.battle_maps[1] = state.battle_maps[0][::-1]
    state.order[1] = (state.order[0] + team) % (2 * team)
    state.mechs["pack"][1] = 1 - state.mechs["pack"][1]
    players = (opponents.make("novice", 0, "battle"), opponents.make("novice", 1, "battle"))
    for _ in range(150):
        actions = scripted_actions(engine, players)
        actions[1] = actions[0][swap]
        observations, rewards, terminated, _ = engine.step(actions)
        # Mech indices differ between the two battles; all observations are the same.
        assert observations[1].tobytes() == observations[0][swap].tobytes()
        assert rewards[1].tobytes() == rewards[0][swap].tobytes()
        assert terminated[1].tobytes() == terminated[0][swap].tobytes()
    assert (state.mechs["armour"][0] < 60).any()


def test_a_restored_snapshot_continues_with_the_same_bytes(recorded):
    actions, digests, _ = recorded
    engine = BattleEngine(num_battles=1, **SCENARIO)
    engine.reset([SEEDS[0]])
    half = len(actions[SEEDS[0]]) // 2
    for action in actions[SEEDS[0]][:half]:
        engine.step(action[None])
    kept = engine.snapshot()
    twins = [pickle.loads(pickle.dumps(engine)), copy.deepcopy(engine)]
    for action in actions[SEEDS[0]][half:]:
        engine.step(action[None])
    engine.restore(kept)
    for twin in [engine, *twins]:
        assert digest(twin, 0) == digests[half]
        for i, action in enumerate(actions[SEEDS[0]][half:], half + 1):
            twin.step(action[None])
            assert digest(twin, 0) == digests[i]


def test_a_snapshot_of_another_shape_is_refused_and_changes_nothing():
    engine = BattleEngine("duel", 2)
    engine.reset([1, 2])
    before = digest(engine, 0)
    other = BattleEngine("duel", 1)
    other.reset([9])
    with pytest.raises(ValueError, match=r"snapshot: array 'mechs': expected \(2, 2\)"):
        engine.restore(other.snapshot())
    with pytest.raises(ValueError, match="'voxels' is missing"):
        engine.restore({k: v for k, v in engine.snapshot().items() if k != "voxels"})
    assert digest(engine, 0) == before


def test_a_finished_battle_does_not_change_until_it_is_reset():
    engine = BattleEngine("duel", 2, max_steps=3)
    engine.reset([1, 2])
    zeros = np.zeros((2, 2, engine.action_dim), np.float32)
    for _ in range(3):
        _, _, terminated, truncated = engine.step(zeros)
    assert truncated.all()
    assert not terminated.any()
    assert engine.battle_over.all()
    standing = engine.state.mechs[0].tobytes()
    observed = engine.observations[0].tobytes()
    _, rewards, terminated, truncated = engine.step(np.full_like(zeros, np.nan))
    assert not engine.bad_actions.any()
    assert not engine.state.battles["num_events"].any()
    assert not (rewards.any() or terminated.any() or truncated.any())
    engine.reset([7, 8], [False, True])
    assert engine.battle_over.tolist() == [True, False]
    assert engine.state.mechs[0].tobytes() == standing
    assert engine.observations[0].tobytes() == observed
    assert engine.state.battles["seed"].tolist() == [1, 8]


def test_non_finite_actions_become_zero_and_are_counted():
    engine, twin = BattleEngine("duel", 1), BattleEngine("duel", 1)
    for e in (engine, twin):
        e.reset([4])
    action = np.full((1, 2, engine.action_dim), 0.5, np.float32)
    bad = action.copy()
    bad[0, 0, 0], bad[0, 0, 1], bad[0, 1, 3] = np.nan, np.inf, -np.inf
    kept = bad.copy()
    action[0, 0, 0] = action[0, 0, 1] = action[0, 1, 3] = 0.0
    engine.step(bad)
    twin.step(action)
    np.testing.assert_array_equal(bad, kept)
    assert engine.bad_actions.tolist() == [[2, 1]]
    assert twin.bad_actions.tolist() == [[0, 0]]
    assert engine.observations.tobytes() == twin.observations.tobytes()
    engine.step(np.full((1, 2, engine.action_dim), 1e300))
    assert engine.bad_actions.tolist() == [[engine.action_dim] * 2]


def test_the_callers_actions_may_be_read_only_and_of_any_real_dtype():
    engine = BattleEngine("duel", 1)
    engine.reset([4])
    actions = np.ones((1, 2, engine.action_dim), np.float64)
    actions.flags.writeable = False
    engine.step(actions)
    engine.step(np.ones((1, 2, engine.action_dim), np.int8))
    engine.step(np.asfortranarray(np.ones((1, 2, engine.action_dim), np.float32)))


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([1], r"expected shape \(2,\)"),
        ([1, -1], r"in \[0, 2\*\*64\), got -1"),
        ([1, 2**64], "got 18446744073709551616"),
        ([1.5, 2], "expected an integer"),
        ([True, False], "expected an integer"),
        (["a", "b"], "expected an integer"),
    ],
)
def test_bad_seeds(seeds, message):
    with pytest.raises(ValueError, match=message):
        BattleEngine("duel", 2).reset(seeds)


def test_seeds_of_all_sizes_can_be_mixed():
    engine = BattleEngine("duel", 3)
    for seeds in ([2**63, 1, 2**64 - 1], np.array([2**63, 1, 2**64 - 1], np.uint64)):
        engine.reset(seeds)
        assert engine.state.battles["seed"].tolist() == [2**63, 1, 2**64 - 1]


def test_a_closed_engine_steps_without_its_threads():
    engine, twin = BattleEngine("duel", 2, num_threads=2), BattleEngine("duel", 2)
    for e in (engine, twin):
        e.reset([1, 2])
    engine.close()
    engine.close()
    actions = np.ones((2, 2, engine.action_dim))
    assert engine.step(actions)[0].tobytes() == twin.step(actions)[0].tobytes()


def test_a_shallow_copy_starts_battles_in_its_own_state():
    engine = BattleEngine("duel", 1, maps=1)
    engine.reset([1])
    twin = copy.copy(engine)
    twin.state = engine.state._replace(battles=engine.state.battles.copy())
    twin.reset([2])
    engine.reset([3])
    assert (int(twin.state.battles["seed"][0]), int(engine.state.battles["seed"][0])) == (2, 3)


def test_a_shallow_copy_has_the_global_state_of_its_own_state():
    engine = BattleEngine("duel", 1, maps=1)
    engine.reset([1])
    before = engine.global_state()
    twin = copy.copy(engine)
    twin.state = engine.state._replace(battles=engine.state.battles.copy())
    twin.state.battles["zone_x"] += 5.0
    assert (twin.global_state() != before).any()
    np.testing.assert_array_equal(engine.global_state(), before)


def test_observations_follow_from_a_snapshot():
    """Also those of a battle that has ended with damage and was stepped again, and of one that was never reset."""
    engine, twin = (BattleEngine("duel-open", 2, max_steps=60) for _ in range(2))
    engine.reset([1, 2], np.array([True, False]))
    never = engine.snapshot()
    engine.reset([1, 2])
    players = (opponents.make("expert", 0, "battle"), opponents.make("expert", 1, "battle"))
    while not engine.battle_over.all():
        engine.step(scripted_actions(engine, players))
        engine.state.mechs["hurt_x"] = 3.0
    engine.observe()
    ended = engine.observations.copy()
    engine.step(np.zeros_like(engine.actions))
    np.testing.assert_array_equal(engine.observations, ended)
    twin.restore(engine.snapshot())
    np.testing.assert_array_equal(twin.observations, ended)
    twin.restore(never)
    assert twin.observations[0].any()
    assert not twin.observations[1].any()


def test_a_shallow_copy_has_its_own_threads():
    engine = BattleEngine("duel", 2, num_threads=2)
    engine.reset([1, 2])
    twin = copy.copy(engine)
    twin.close()
    assert twin.state is engine.state
    assert twin._workers is not engine._workers
    barrier = threading.Barrier(2, timeout=60)
    engine._workers.for_all(lambda _: barrier.wait(), [(1,), (2,)])  # would time out without a second thread
    engine.close()


def test_bad_masks_and_sizes():
    engine = BattleEngine("duel", 2)
    with pytest.raises(ValueError, match=r"mask: expected \(2,\) booleans"):
        engine.reset([1, 2], [0, 1])
    for value in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="num_battles: expected an integer of at least 1"):
            BattleEngine("duel", value)
    with pytest.raises(ConfigError, match="did you mean 'duel'"):
        BattleEngine("dual")


def test_bad_steps():
    engine = BattleEngine("duel", 2)
    zeros = np.zeros((2, 2, engine.action_dim), np.float32)
    with pytest.raises(NotResetError, match=r"battles \[0, 1\]"):
        engine.step(zeros)
    engine.reset([1, 2], [True, False])
    with pytest.raises(NotResetError, match=r"battles \[1\]"):
        engine.step(zeros)
    engine.reset([1, 2])
    with pytest.raises(ValueError, match=rf"expected shape \(2, 2, {engine.action_dim}\)"):
        engine.step(zeros[:1])
    with pytest.raises(ValueError, match="expected real numbers"):
        engine.step(np.full(zeros.shape, "x"))


def test_rosters_of_different_sizes_play_to_the_end():
    engine = BattleEngine("duel", 2, blue=("scout",), red=("heavy", "light", "medium"), max_steps=40)
    engine.reset([1, 2])
    noise = np.random.default_rng(0)
    while not engine.battle_over.all():
        engine.step(noise.uniform(-1, 1, (2, 4, engine.action_dim)))
    assert np.isfinite(engine.observations).all()


def test_team_statistics_are_sums_over_the_mechs(recorded):
    actions, _, _ = recorded
    engine = BattleEngine(num_battles=1, **SCENARIO)
    engine.reset([SEEDS[0]])
    for action in actions[SEEDS[0]]:
        engine.step(action[None])
    blue, red = engine.team_statistics[0]
    for name in ("damage_dealt", "kills", "assists", "paints", "interceptions", "falls", "shutdowns", "deaths"):
        assert blue[name] == pytest.approx(engine.statistics[name][0, :5].sum())
        assert red[name] == pytest.approx(engine.statistics[name][0, 5:].sum())
    assert blue["damage_dealt"] > 0 < red["damage_dealt"]
    taken = blue["damage_taken"] + red["damage_taken"]
    lost = sum(kind.armour for kind in engine.config.catalog.mech_classes for name in PACK * 2 if name == kind.name)
    assert taken == pytest.approx(lost - engine.state.mechs["armour"].sum())
    names = [weapon.name for weapon in engine.config.catalog.weapons]
    assert engine.shots.shape == engine.hits.shape == (1, 10, len(names))
    laser = names.index("laser")
    assert (engine.hits[..., laser] == engine.shots[..., laser]).all()
    engine.shots[:] = engine.hits[:] = -1
    assert (engine.shots >= 0).all()
    assert (engine.hits >= 0).all()


def test_steps_do_not_depend_on_scratch_arrays(recorded):
    """Random contents of scratch arrays do not change the next decision."""
    actions, digests, _ = recorded
    engine = BattleEngine(num_battles=1, **SCENARIO)
    engine.reset(SEEDS[:1])
    noise = np.random.default_rng(0)
    for taken, expected in zip(actions[SEEDS[0]], digests[1:], strict=False):
        for name in set(st.SCRATCH) - {"pending", "blocks", "blockers"}:
            bytes_of = getattr(engine.state, name).view(np.uint8)
            bytes_of[...] = noise.integers(0, 256, bytes_of.shape, np.uint8)
        engine.state.blockers[...] = noise.integers(0, 60, engine.state.blockers.shape)
        assert not engine.state.pending.any()
        engine.step(taken[None])
        assert digest(engine, 0) == expected
