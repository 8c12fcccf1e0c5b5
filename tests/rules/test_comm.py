"""Messages to pack-mates: which mechs receive them, and which send none."""

import numpy as np
import pytest

from echelon_env.config.battle import PACK
from echelon_env.layout.observations import COMM_ROWS, Comm
from rules.arena import Arena, of_kind

EAST, WEST = 0, 180
WORDS = tuple(f"comm_{i}" for i in range(8))
MESSAGE = np.array([0.5, -0.25, 1.0, -1.0, 0.0, 0.125, 0.75, -0.5])


def pack(**overrides):
    """A whole pack, a mech of another pack, and a distant enemy."""
    places = {f"{i} {name}": (8 + 5 * i, 8) for i, name in enumerate(PACK)}
    return Arena({**places, "other heavy": (40, 8)}, {"medium": (60, 60)}, **overrides)


def say(arena, name, message=MESSAGE, **entries):
    arena.order(name, **dict(zip(WORDS, message, strict=True)), **entries)


def heard(arena, name):
    """The filled rows of a mech's comm table, by row number."""
    table, mask = arena.observed(name, "comm"), arena.observed(name, "comm_mask")
    assert not table[mask == 0].any()
    return {int(i): table[i] for i in np.flatnonzero(mask)}


def shut_down(arena, name):
    capacity = arena.config.catalog.mech_classes[arena[name].mech_class].heat_capacity
    arena[name].shutdown, arena[name].heat = 1, 0.99 * capacity


def test_a_message_arrives_in_the_next_observation_of_the_pack():
    arena = pack()
    say(arena, "3 light")
    arena.run()
    own = heard(arena, "3 light")[0]
    np.testing.assert_array_equal(own[: Comm.IS_OWN], MESSAGE.astype(np.float32))
    assert (own[Comm.IS_OWN], own[Comm.IS_LIGHT]) == (1, 1)
    for name in arena.names[:3]:
        other = heard(arena, name)[3]
        np.testing.assert_array_equal(other[: Comm.IS_OWN], MESSAGE.astype(np.float32))
        assert (other[Comm.IS_OWN], other[Comm.IS_LIGHT]) == (0, 1)


def test_the_own_row_comes_first_and_then_the_roster():
    arena = pack()
    for i, name in enumerate(arena.names[:5]):
        say(arena, name, np.full(8, i / 8))
    arena.run()
    for i, name in enumerate(arena.names[:5]):
        order = [i, *(j for j in range(5) if j != i)]
        assert [row[Comm.MESSAGE_0] * 8 for row in heard(arena, name).values()] == order


def test_a_message_lasts_for_one_observation():
    arena = pack()
    say(arena, "3 light")
    arena.run()
    arena.order("3 light")
    arena.run()
    assert not any(row[: Comm.IS_OWN].any() for row in heard(arena, "0 heavy").values())


def test_without_a_message_zeros_are_sent():
    arena = pack()
    arena.run()
    rows = heard(arena, "0 heavy")
    assert sorted(rows) == list(range(COMM_ROWS))
    assert not any(row[: Comm.IS_OWN].any() for row in rows.values())


def test_messages_stay_in_the_pack():
    arena = pack()
    say(arena, "other heavy")
    say(arena, "medium")
    arena.run()
    assert not any(row[: Comm.IS_OWN].any() for row in heard(arena, "0 heavy").values())
    assert sorted(heard(arena, "other heavy")) == [0]
    assert sorted(heard(arena, "medium")) == [0]


def test_entries_are_clipped_and_non_finite_ones_are_zero():
    arena = pack()
    say(arena, "0 heavy", [3.0, -7.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5])
    arena.run()
    assert heard(arena, "1 medium")[1][: Comm.IS_OWN].tolist() == [1, -1, 0, 0, 0, 1, -1, 0.5]


def test_a_shut_down_mech_sends_nothing_but_receives():
    arena = pack()
    say(arena, "0 heavy")
    say(arena, "1 medium")
    shut_down(arena, "0 heavy")
    arena.run()
    assert 1 not in heard(arena, "1 medium")  # the heavy's row
    assert sorted(heard(arena, "0 heavy")) == [1, 2, 3, 4]
    np.testing.assert_array_equal(heard(arena, "0 heavy")[1][: Comm.IS_OWN], MESSAGE.astype(np.float32))


def test_a_mech_that_shuts_down_in_a_decision_has_sent_its_message():
    arena = pack()
    say(arena, "0 heavy")
    arena["0 heavy"].heat = 140.0  # of 130
    arena.run()
    assert arena["0 heavy"].shutdown
    assert 1 in heard(arena, "1 medium")
    arena.run()
    assert 1 not in heard(arena, "1 medium")


def test_a_mech_that_restarts_in_a_decision_sends_from_the_next():
    arena = pack()
    say(arena, "0 heavy")
    arena["0 heavy"].shutdown, arena["0 heavy"].heat = 1, 104.2  # 80 % are 104
    arena.run()
    assert not arena["0 heavy"].shutdown
    assert 1 not in heard(arena, "1 medium")
    arena.run()
    assert 1 in heard(arena, "1 medium")


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
def test_dead_mechs_send_no_messages(dead_agents):
    """Neither in the decision of its death, when its last action was a message, nor later."""
    arena = pack(dead_agents=dead_agents)
    arena.put("medium", 8, 14, -90)
    arena["0 heavy"].armour = 1.0
    say(arena, "0 heavy")
    arena.order("medium", primary=1)
    assert of_kind(arena.run(), "death", actor="0 heavy")
    for _ in range(2):
        assert 1 not in heard(arena, "1 medium")
        assert heard(arena, "0 heavy") == {}
        assert sorted(heard(arena, "1 medium")) == [0, 2, 3, 4]  # the others keep their rows
        arena.run()


def test_a_reset_clears_all_messages():
    arena = pack()
    say(arena, "0 heavy")
    arena.run()
    arena.engine.reset([1])
    assert all(heard(arena, name) == {} for name in arena.names)
