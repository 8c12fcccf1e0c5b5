"""The contract of every player of the package: levels, mixtures and handicaps."""

import copy
import functools
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from echelon_env import make_config, opponents
from echelon_env.config.schema import ConfigError
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.opponents import LEVELS, Policy, scripted
from opponents.contests import recorded, think

SKIRMISH = make_config("skirmish")
PLAYERS = {level: {"opponent": level} for level in LEVELS} | {
    "mixture": {"opponent": {"novice": 1, "veteran": 2, "expert": 1}},
    "handicapped": {"opponent": "expert", "reaction_delay": 0.75, "aim_error": 0.4, "fire_rate": 0.4},
}


@pytest.fixture(params=PLAYERS)
def make(request):
    """A factory of equal players."""
    return lambda seed=3, **others: opponents.make(**PLAYERS[request.param], seed=seed, config=SKIRMISH, **others)


@pytest.fixture(scope="module")
def seen():
    return recorded()


def test_it_is_a_policy_with_a_name(make):
    assert isinstance(make(), Policy)
    assert "seed=3" in repr(make())


def test_actions_are_finite_within_bounds_and_follow_from_the_seed(make, seen):
    actions = think(make(), seen)
    assert actions.dtype == np.float32
    assert actions.shape == (*seen.shape[:2], ACTION_DIM)
    assert np.isfinite(actions).all()
    assert np.abs(actions).max() <= 1.0
    assert think(make(), seen).tobytes() == actions.tobytes()


def test_a_mechs_actions_depend_only_on_its_own_row_and_memory(make, seen):
    """The actions do not change when every other row is scrambled."""
    honest = think(make(), seen)
    noise = np.random.default_rng(0)
    for row in (0, 4, 13):
        player = make()
        for now, rows in enumerate(seen):
            scrambled = noise.uniform(-1, 1, rows.shape).astype(np.float32)
            scrambled[row] = rows[row]
            assert player.act(scrambled)[row].tobytes() == honest[now, row].tobytes()


def test_rows_can_be_shuffled_split_and_single(make, seen):
    together = think(make(), seen)
    order = np.random.default_rng(1).permutation(seen.shape[1])
    np.testing.assert_array_equal(think(make(), seen[:, order]), together[:, order])
    for part in (slice(0, 7), slice(7, None), slice(5, 6)):
        np.testing.assert_array_equal(think(make(), seen[:, part]), together[:, part])


def test_a_reset_clears_exactly_the_masked_rows(make, seen):
    undisturbed, player, begun = think(make(), seen), make(), make()
    mask = np.zeros(seen.shape[1], bool)
    mask[1::2] = True
    before = think(player, seen[:90])
    player.reset(mask)
    begun.act(seen[0])  # mixtures count the battles
    begun.reset(np.ones_like(mask))
    after, fresh = think(player, seen[90:]), think(begun, seen[90:])
    np.testing.assert_array_equal(np.concatenate([before, after])[:, ~mask], undisturbed[:, ~mask])
    np.testing.assert_array_equal(after[:, mask], fresh[:, mask])
    if isinstance(player, opponents.Handicap):
        assert (after[:, mask] != undisturbed[90:, mask]).any()


def test_rows_without_a_reset_start_a_battle_too(make, seen):
    some = make()
    some.reset(np.arange(seen.shape[1]) < 3)
    np.testing.assert_array_equal(think(some, seen), think(make(), seen))


def test_observations_can_have_any_memory_layout_and_are_only_read(make, seen):
    plain = think(make(), seen[:40])
    wide = np.zeros((*seen.shape[1:], 3), np.float32)
    players = {kind: make() for kind in ("writeable", "read-only", "float64", "strided", "fortran")}
    for now, rows in enumerate(seen[:40]):
        writeable = rows.copy()
        wide[..., 1] = rows
        kinds = {
            "writeable": writeable,
            "read-only": rows,
            "float64": rows.astype(np.float64),
            "strided": wide[..., 1],
            "fortran": np.asfortranarray(rows),
        }
        for kind, observations in kinds.items():
            actions = players[kind].act(observations)
            assert actions.tobytes() == plain[now].tobytes(), kind
            np.testing.assert_array_equal(observations, rows)


@pytest.mark.parametrize("shape", [(3, 5), (OBSERVATION_DIM,), (2, 3, OBSERVATION_DIM), (3, OBSERVATION_DIM + 1), ()])
def test_other_shapes_are_errors(make, shape):
    with pytest.raises(ValueError, match=rf"observations: expected shape \(rows, {OBSERVATION_DIM}\), got "):
        make().act(np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[0.0] * OBSERVATION_DIM], "observations: expected an array of floats, got list"),
        (None, "observations: expected an array of floats, got NoneType"),
        (np.zeros((1, OBSERVATION_DIM), np.int64), "observations: expected an array of floats, got int64"),
        (np.zeros((1, OBSERVATION_DIM), np.complex64), "observations: expected an array of floats, got complex64"),
        (np.zeros((1, OBSERVATION_DIM), object), "observations: expected an array of floats, got object"),
    ],
)
def test_anything_but_an_array_of_floats_is_an_error(make, wrong, message):
    with pytest.raises(ValueError, match=message):
        make().act(wrong)


@pytest.mark.parametrize("mask", [[0, 1], np.ones((2, 1), bool), np.array(True), [True, None], np.array([0.0, 1.0])])
def test_masks_are_one_boolean_per_row(make, mask):
    player = make()
    player.act(np.zeros((2, OBSERVATION_DIM), np.float32))
    with pytest.raises(ValueError, match=r"mask: expected booleans of shape \(rows,\), got "):
        player.reset(mask)
    player.reset([True, False])


def test_rows_are_mechs_through_all_their_battles(make, seen):
    """A call with another number of rows is refused and resets none."""
    player, undisturbed = make(), make()
    player.act(seen[0])
    with pytest.raises(ValueError, match=r"expected 20 rows as before, .*got 7; reset\(np.ones\(7, bool\)\) restarts"):
        player.act(seen[1, :7])
    with pytest.raises(ValueError, match="mask: expected 20 booleans as there were rows before, or others all true"):
        player.reset(np.arange(7) < 3)
    undisturbed.act(seen[0])
    assert player.act(seen[1]).tobytes() == undisturbed.act(seen[1]).tobytes()
    player.reset(np.ones(7, bool))
    np.testing.assert_array_equal(think(player, seen[:40, :7]), think(make(), seen[:40, :7]))


def test_zero_rows_give_zero_actions(make):
    assert make().act(np.zeros((0, OBSERVATION_DIM), np.float32)).shape == (0, ACTION_DIM)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda player: pickle.loads(pickle.dumps(player))])
def test_a_copy_in_mid_battle_continues_equally_and_independently(make, seen, clone):
    player = make()
    think(player, seen[:70])
    twin = clone(player)
    rest = think(player, seen[70:])
    np.testing.assert_array_equal(think(twin, seen[70:]), rest)


@pytest.mark.parametrize("level", LEVELS)
def test_dead_mechs_do_nothing(level, seen):
    rows = seen[80].copy()
    rows[::2, Self.ALIVE] = 0.0
    actions = opponents.make(level, 0, SKIRMISH).act(rows)
    assert not actions[::2].any()
    assert actions[1::2].any()


def test_random_choices_follow_from_the_seed():
    """The trivial level pulls its triggers from time to time, at different times for each mech."""
    rows = np.zeros((64, OBSERVATION_DIM), np.float32)
    rows[:, Self.ALIVE] = 1.0
    rows[:, Self.POSITION_X] = np.linspace(-1, 1, 64)
    rows[:, STREAMS["contacts"].start : STREAMS["squad"].start] = 1.0
    pulls = [
        think(opponents.make("trivial", seed, "battle"), np.tile(rows, (64, 1, 1)))[..., Action.PRIMARY] > 0
        for seed in (0, 1)
    ]
    assert (pulls[0] != pulls[1]).any(axis=0).mean() > 0.8
    assert len(np.unique(pulls[0], axis=1).T) > 16
    assert (pulls[0].sum(axis=0) == 8).all()  # of 64 decisions: 2 s of 16


INTERPRETED = """
import sys
import numpy as np
from echelon_env import make_config, opponents
from echelon_env.engine.kernels import backend
from opponents.contests import think
from opponents.test_contract import PLAYERS
assert backend().name == "python"
seen = np.load(sys.argv[1])
config = make_config("skirmish")
np.savez(sys.argv[2], **{name: think(opponents.make(**PLAYERS[name], seed=3, config=config), seen) for name in PLAYERS})
"""


@pytest.mark.long
def test_without_the_jit_actions_have_the_same_bytes(seen, tmp_path):
    some = np.ascontiguousarray(seen[::16, ::2])
    np.save(tmp_path / "seen.npy", some)
    result = subprocess.run(
        [sys.executable, "-c", INTERPRETED, str(tmp_path / "seen.npy"), str(tmp_path / "actions.npz")],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    with np.load(tmp_path / "actions.npz") as interpreted:
        for name, given in PLAYERS.items():
            compiled = think(opponents.make(**given, seed=3, config=SKIRMISH), some)
            assert compiled.tobytes() == interpreted[name].tobytes(), name


def test_actions_and_state_do_not_depend_on_the_number_of_threads(make, seen, monkeypatch):
    monkeypatch.setattr(scripted, "WAKE", 1)  # so that few rows are shared, too
    one, many = make(), [make(num_threads=threads) for threads in (2, 3, 16)]
    mask = np.arange(seen.shape[1]) % 3 == 0
    for now, rows in enumerate(seen[:60]):
        expected = one.act(rows)
        for player in many:
            assert player.act(rows).tobytes() == expected.tobytes()
        if now == 30:
            for player in (one, *many):
                player.reset(mask)
    state = {name: array.tobytes() for name, array in one.state_arrays().items()}
    for player in (*many, pickle.loads(pickle.dumps(many[0])), copy.deepcopy(many[1])):
        assert {name: array.tobytes() for name, array in player.state_arrays().items()} == state


def test_several_threads_take_part(seen, monkeypatch):
    monkeypatch.setattr(scripted, "WAKE", 1)
    player = opponents.make("expert", 0, SKIRMISH, num_threads=2)
    threads, both = set(), threading.Barrier(2, timeout=30)
    shared = player._rows._act_rows

    def watch(kernel, *arrays):
        if threading.get_ident() not in threads:
            threads.add(threading.get_ident())
            both.wait()  # each thread has one range before any has two
        kernel(*arrays)

    shared._kernels = [functools.partial(watch, kernel) for kernel in shared._kernels]
    player.act(seen[0])
    assert len(threads) == 2


@pytest.mark.parametrize("threads", [0, 1.5, "2"])
def test_numbers_of_threads_are_checked(threads):
    with pytest.raises(ConfigError, match="num_threads: expected"):
        opponents.make("expert", 0, SKIRMISH, num_threads=threads)
