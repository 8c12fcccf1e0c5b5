"""The contract of every player of the package: levels, mixtures and handicaps."""

import copy
import pickle

import numpy as np
import pytest

from echelon_env import make_config, opponents
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.opponents import LEVELS, scripted
from opponents.contests import recorded, think

SKIRMISH = make_config("skirmish")
PLAYERS = {level: {"opponent": level} for level in LEVELS} | {
    "mixture": {"opponent": {"novice": 1, "veteran": 2, "expert": 1}},
    "handicapped": {"opponent": "expert@reaction_delay=0.75,aim_error=0.4,fire_rate=0.4"},
}


@pytest.fixture(params=PLAYERS)
def make(request):
    """A factory of equal players."""
    return lambda seed=3, **others: opponents.make(**PLAYERS[request.param], seed=seed, config=SKIRMISH, **others)


@pytest.fixture(scope="module")
def seen():
    return recorded()


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


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda player: pickle.loads(pickle.dumps(player))])
def test_a_copy_in_mid_battle_continues_equally_and_independently(make, seen, clone):
    player = make()
    think(player, seen[:70])
    twin = clone(player)
    rest = think(player, seen[70:])
    np.testing.assert_array_equal(think(twin, seen[70:]), rest)


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
    assert (pulls[0].sum(axis=0) == 4).all()  # of 64 decisions: 1 s of 16


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


FLOATS = "observations: expected an array of floats, got "
SHAPE = rf"observations: expected shape \(rows, {OBSERVATION_DIM}\), got "
MASK = r"mask: expected booleans of shape \(rows,\), got "


@pytest.mark.parametrize(
    ("observations", "mask", "message"),
    [
        ([[0.0] * OBSERVATION_DIM], None, FLOATS + "list"),
        (None, None, FLOATS + "NoneType"),
        (np.zeros((1, OBSERVATION_DIM), np.int64), None, FLOATS + "int64"),
        (np.zeros((1, OBSERVATION_DIM), object), None, FLOATS + "object"),
        (np.zeros((3, 5)), None, SHAPE),
        (np.zeros(OBSERVATION_DIM), None, SHAPE),
        (np.zeros((2, 3, OBSERVATION_DIM)), None, SHAPE),
        (None, [0, 1], MASK),
        (None, np.ones((2, 1), bool), MASK),
        (None, [True, None], MASK),
    ],
)
def test_bad_arguments_are_refused(make, observations, mask, message):
    player = make()
    player.act(np.zeros((2, OBSERVATION_DIM), np.float32))
    with pytest.raises(ValueError, match=message):
        player.act(observations) if mask is None else player.reset(mask)
    player.reset([True, False])
