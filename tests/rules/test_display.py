"""The order of the contact table: nearest, most dangerous or most damaged first."""

import numpy as np
import pytest

from echelon_env.layout.observations import Contact, Self
from rules.arena import Arena, changed

EAST, WEST = 0, 180


def watch(viewer="scout", **overrides):
    """A viewer, a light 8.9 m away, a medium 10 m away and a heavy 18 m away."""
    return Arena(
        {viewer: (10, 32, EAST)},
        {"light": (14, 40, WEST), "medium": (20, 32, WEST), "heavy": (28, 32, WEST)},
        **overrides,
    )


def shown(arena, **entries):
    """The contacts of the first mech in the order that its next action selects."""
    arena.order(arena.names[0], **entries)
    arena.run()
    return arena.contacts(arena.names[0])


def test_the_nearest_come_first_unless_the_action_says_otherwise():
    arena = watch()
    assert shown(arena) == ["light", "medium", "heavy"]
    assert shown(arena, display_nearest=1) == ["light", "medium", "heavy"]


def test_the_most_dangerous_first():
    """Of the medium's weapons the autocannon reaches 10 m: 6 / 0.2 s. Of the heavy's, missiles and gauss reach 18 m:
    40 / 3 s + 50 / 4 s. Neither of the light's reaches 8.9 m."""
    assert shown(watch(), display_dangerous=1) == ["medium", "heavy", "light"]


def test_danger_ends_with_the_weapons_range():
    """No autocannon reaches 19 m."""
    arena = watch()
    arena.put("medium", 29, 32, WEST)
    assert shown(arena, display_dangerous=1) == ["heavy", "light", "medium"]


def test_missiles_are_a_danger_beyond_their_unaided_range():
    arena = watch()
    arena.put("heavy", 50, 32, WEST)
    arena.put("medium", 29, 32, WEST)
    assert shown(arena, display_dangerous=1) == ["light", "heavy", "medium"]


@pytest.mark.parametrize("harmless", [{"shutdown": 1, "heat": 99.0}, {"fallen": 20, "stability": 0.0}])
def test_fallen_and_shut_down_mechs_are_no_danger(harmless):
    arena = watch()
    for name, value in harmless.items():
        setattr(arena["medium"], name, value)
    assert shown(arena, display_dangerous=1) == ["heavy", "light", "medium"]


def test_a_weapon_that_no_mech_carries_is_no_danger():
    arena = watch(banned_weapons=("autocannon",))
    assert shown(arena, display_dangerous=1) == ["heavy", "light", "medium"]


def test_a_cooling_weapon_without_line_of_sight_still_is_a_danger():
    """Danger depends on ranges only: what the enemy could do in a moment."""
    arena = watch(observability="full")
    arena["medium"].cooldown = 4
    arena.fill("concrete", x=(15, 16), y=(30, 35), z=(0, 10))
    assert shown(arena, display_dangerous=1) == ["medium", "heavy", "light"]
    assert arena.observed("scout", "contacts")[0, Contact.LINE_OF_SIGHT] == 0


def test_the_most_damaged_first_as_a_share_of_full_armour():
    """60 of 200 hit points are a smaller share than 40 of 80."""
    arena = watch()
    arena["heavy"].armour = 60.0
    arena["light"].armour = 40.0
    assert shown(arena, display_damaged=1) == ["heavy", "light", "medium"]


def test_ties_are_sorted_by_distance():
    arena = watch()
    arena["medium"].armour, arena["light"].armour = 75.0, 40.0
    assert shown(arena, display_damaged=1) == ["light", "medium", "heavy"]


@pytest.mark.parametrize("display", ["display_nearest", "display_dangerous", "display_damaged"])
def test_ties_at_equal_distances_are_sorted_by_spawn_place(display):
    arena = Arena({"scout": (32, 32, EAST)}, {"medium": (42, 32), "second medium": (32, 42), "third medium": (22, 32)})
    by_place = sorted(arena.names[1:], key=lambda name: arena[name].place)
    assert shown(arena, **{display: 1}) == by_place


@pytest.mark.parametrize(
    ("nearest", "dangerous", "damaged", "display"),
    [
        (0, 0, 0, Self.BY_DISTANCE),
        (-1, -0.5, -0.9, Self.BY_DANGER),
        (0.1, 0.1, 0.2, Self.BY_DAMAGE),
        (0.3, 0.3, 0.3, Self.BY_DISTANCE),
        (0, 0.3, 0.3, Self.BY_DANGER),
        (0, 1, 5, Self.BY_DANGER),  # both are cut to 1
        (0, np.nan, 0, Self.BY_DISTANCE),
    ],
)
def test_the_highest_entry_counts_and_the_first_one_of_a_tie(nearest, dangerous, damaged, display):
    arena = watch()
    shown(arena, display_nearest=nearest, display_dangerous=dangerous, display_damaged=damaged)
    flags = arena.observed("scout", "self")[Self.BY_DISTANCE : Self.BY_DAMAGE + 1]
    assert flags.tolist() == [float(entry == display) for entry in (Self.BY_DISTANCE, Self.BY_DANGER, Self.BY_DAMAGE)]


def test_a_display_choice_lasts_for_one_decision():
    arena = watch()
    assert shown(arena, display_dangerous=1)[0] == "medium"
    assert shown(arena)[0] == "light"


def test_of_more_enemies_than_slots_the_first_of_the_order_are_shown():
    """With two slots the third enemy in the order is not in the table."""
    arena = watch("blue light", catalog=changed(light={"contact_slots": 2}))
    arena["heavy"].armour = 1.0
    assert shown(arena) == ["light", "medium"]
    assert shown(arena, display_dangerous=1) == ["medium", "heavy"]
    assert shown(arena, display_damaged=1) == ["heavy", "light"]


def test_after_a_reset_contacts_are_sorted_by_distance():
    arena = watch()
    shown(arena, display_damaged=1)
    arena.engine.reset([1])
    assert arena.observed("scout", "self")[Self.BY_DISTANCE : Self.BY_DAMAGE + 1].tolist() == [1, 0, 0]


def test_the_chosen_target_is_marked_in_any_row():
    arena = watch()
    shown(arena)
    assert shown(arena, display_dangerous=1, target_1=1) == ["medium", "heavy", "light"]  # row 1 was the medium
    assert arena.observed("scout", "contacts")[:3, Contact.IS_TARGET].tolist() == [1, 0, 0]
    shown(arena, target_2=1)  # row 2 was the light
    assert arena.observed("scout", "contacts")[:3, Contact.IS_TARGET].tolist() == [1, 0, 0]
    assert arena.contacts("scout")[0] == "light"
    assert arena.observed("scout", "self")[Self.HAS_TARGET] == 1


def test_an_empty_row_cannot_be_chosen():
    arena = watch()
    shown(arena)
    shown(arena, target_2=1)
    shown(arena, target_4=1, target_0=0.5)  # the higher counts
    assert arena.observed("scout", "contacts")[:, Contact.IS_TARGET].nonzero()[0].tolist() == [2]
