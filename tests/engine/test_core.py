import copy
import hashlib
import pickle

import numpy as np
import pytest

from echelon_env import BattleEngine, NotResetError, opponents
from echelon_env.engine import state as st
from echelon_env.layout.actions import Action
from support.playing import record_battle, scripted_actions

SCENARIO = {"scenario": "skirmish", "terrain": {"size": 60}, "time_limit": "terminate"}
SEEDS = (47, 48)


def digest(engine: BattleEngine, b: int) -> bytes:
    """Hash of a battle's complete state and outputs."""
    h = hashlib.sha256()
    for array in (*engine.snapshot().values(), engine.observations):
        h.update(np.ascontiguousarray(array[b]).tobytes())
    return h.digest()


@pytest.fixture(scope="module")
def recorded():
    """Two battles in a row on one engine: their actions and the hash after every decision."""
    engine = BattleEngine(num_battles=1, **SCENARIO)
    actions = {seed: record_battle(engine, seed) for seed in SEEDS}
    digests, happened = [], set()
    for seed in SEEDS:
        engine.reset([seed])
        digests.append(digest(engine, 0))
        for action in actions[seed]:
            engine.step(action[None])
            digests.append(digest(engine, 0))
            happened |= {st.EVENT_KINDS[kind] for kind in engine.events(0)["kind"]}
        assert engine.battle_over[0]
    assert happened >= set(st.EVENT_KINDS) - {"fall", "rise", "legged"}
    return actions, digests


@pytest.mark.parametrize(("num_battles", "position", "num_threads"), [(1, 0, 2), (8, 0, 1), (8, 7, 2)])
def test_same_seed_and_actions_give_the_same_bytes(recorded, num_battles, position, num_threads):
    actions, digests = recorded
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
    actions, digests = recorded
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


def test_steps_do_not_depend_on_scratch_arrays(recorded):
    """Random contents of scratch arrays do not change the next decision."""
    actions, digests = recorded
    engine = BattleEngine(num_battles=1, **SCENARIO)
    engine.reset(SEEDS[:1])
    noise = np.random.default_rng(0)
    for taken, expected in zip(actions[SEEDS[0]], digests[1:], strict=False):
        for name in set(st.SCRATCH) - {"pending", "blockers", "opaque", "solid", "hazard", "blocks"}:
            bytes_of = getattr(engine.state, name).view(np.uint8)
            bytes_of[...] = noise.integers(0, 256, bytes_of.shape, np.uint8)
        engine.state.blockers[...] = noise.integers(0, 60, engine.state.blockers.shape)
        assert not engine.state.pending.any()
        engine.step(taken[None])
        assert digest(engine, 0) == expected


def test_actions_are_clipped_and_non_finite_ones_are_zero_and_counted():
    engine, twin = BattleEngine("duel", 1), BattleEngine("duel", 1)
    for e in (engine, twin):
        e.reset([4])
    action = np.full((1, 2, engine.action_dim), 0.5, np.float32)
    bad = action.copy()
    bad[0, 0, :2], bad[0, 1, 3], bad[0, 0, Action.TURN] = (np.nan, np.inf), -np.inf, -3.0
    action[0, 0, :2], action[0, 1, 3], action[0, 0, Action.TURN] = 0.0, 0.0, -1.0
    bad.flags.writeable = False
    engine.step(bad.astype(np.float64))
    twin.step(action)
    assert engine.bad_actions.tolist() == [[2, 1]]
    assert twin.bad_actions.tolist() == [[0, 0]]
    assert engine.observations.tobytes() == twin.observations.tobytes()
    engine.step(np.full((1, 2, engine.action_dim), 1e300))
    assert engine.bad_actions.tolist() == [[engine.action_dim] * 2]
    engine.step(np.asfortranarray(np.ones((1, 2, engine.action_dim), np.int8)))


BAD = [
    (lambda duel: duel.reset([1]), r"seeds: expected shape \(2,\)"),
    (lambda duel: duel.reset([1, -1]), r"in \[0, 2\*\*64\), got -1"),
    (lambda duel: duel.reset([1, 2**64]), "got 18446744073709551616"),
    (lambda duel: duel.reset([1.5, 2]), "expected an integer"),
    (lambda duel: duel.reset(["a", True]), "expected an integer"),
    (lambda duel: duel.reset([1, 2], [0, 1]), r"mask: expected \(2,\) booleans"),
    (lambda duel: duel.step(np.zeros((1, 2, duel.action_dim))), r"expected shape \(2, 2, "),
    (lambda duel: duel.step(np.full((2, 2, duel.action_dim), "x")), "expected real numbers"),
    (lambda duel: duel.restore(BattleEngine("duel", 1).snapshot()), r"snapshot: array 'mechs': expected \(2, 2\)"),
    (lambda duel: duel.restore({"mechs": duel.snapshot()["mechs"]}), "snapshot: array 'teams' is missing"),
    (lambda duel: BattleEngine("duel", 1.5), "num_battles: expected an integer of at least 1"),
    (lambda duel: BattleEngine("duel", 1, 0), "num_threads: expected an integer of at least 1"),
    (lambda duel: BattleEngine("dual"), "did you mean 'duel'"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_arguments_are_refused_and_change_nothing(duel, call, message):
    before = digest(duel, 0), digest(duel, 1)
    with pytest.raises(ValueError, match=message):
        call(duel)
    assert (digest(duel, 0), digest(duel, 1)) == before


@pytest.fixture(scope="module")
def duel():
    engine = BattleEngine("duel", 2)
    engine.reset([1, 2])
    return engine


def test_battles_that_were_never_reset_are_not_stepped():
    engine = BattleEngine("duel", 3)
    zeros = np.zeros((3, 2, engine.action_dim), np.float32)
    engine.reset([2**63, 1, 2**64 - 1], [True, False, True])
    with pytest.raises(NotResetError, match=r"battles \[1\]"):
        engine.step(zeros)
    engine.reset([2**63, 1, 2**64 - 1])
    engine.step(zeros)
    assert engine.state.battles["seed"].tolist() == [2**63, 1, 2**64 - 1]
