"""Paint: which pack it belongs to, how long it lasts, and its effects."""

import pytest

from echelon_env.config.battle import PACK
from echelon_env.config.catalog import LASER, MEDIUM, PAINTER
from rules.arena import Arena, changed, of_kind

EAST, WEST = 0, 180
TICKS = 100  # 5 s of 0.05 s


def hunters(**overrides):
    """A scout with its painter and a medium with its laser, at a medium that faces them."""
    return Arena(
        {"scout": (20, 30, EAST), "blue medium": (22, 34, EAST)},
        {"red medium": (27, 32, WEST), "light": (60, 60)},
        **overrides,
    )


def paint_once(arena):
    arena.order("scout", primary=1)
    arena.run()
    arena.order("scout")


def test_a_painters_hit_marks_its_target_for_five_seconds():
    arena = hunters()
    paint_once(arena)
    assert PAINTER.paint == 5.0
    (paint,) = of_kind(arena.log, "paint")
    assert (paint.actor, paint.target, paint.weapon) == ("scout", "red medium", "painter")
    assert arena.is_painted("red medium", pack_of="scout")
    arena.run(TICKS - 1)
    assert arena.is_painted("red medium", pack_of="scout")
    arena.run()
    assert not arena.is_painted("red medium", pack_of="scout")


def test_painting_does_no_damage():
    arena = hunters()
    paint_once(arena)
    assert of_kind(arena.log, "hit")[0].amount == 0.0
    assert arena["red medium"].armour == MEDIUM.armour
    assert arena.statistics("scout")["paints"] == 1


def test_a_mark_counts_from_the_next_tick():
    """A target painted and hit in the same tick takes the normal damage; from the next tick on more."""
    arena = hunters()
    arena.order("scout", primary=1)
    arena.order("blue medium", primary=1)
    arena.run(13)
    first, second = of_kind(arena.log, "hit", weapon="laser")
    assert first.amount == LASER.damage
    assert second.amount == pytest.approx(arena.config.combat.paint_damage * LASER.damage)


def test_a_mark_belongs_to_one_pack():
    """Blue's sixth mech belongs to another pack: the first pack's paint has no effect for it."""
    places = {f"{i} {name}": (5 + 4 * i, 5) for i, name in enumerate(PACK)}
    arena = Arena({**places, "other medium": (20, 30, EAST)}, {"red medium": (26, 30, WEST)})
    assert arena["other medium"].pack != arena["0 heavy"].pack
    arena.paint("red medium", by="4 scout")
    arena.order("other medium", primary=1)
    assert of_kind(arena.run(), "hit")[0].amount == LASER.damage
    arena.paint("red medium", by="other medium")
    arena.run(11)
    assert of_kind(arena.run(), "hit")[0].amount == pytest.approx(arena.config.combat.paint_damage * LASER.damage)


@pytest.mark.parametrize(("by", "seconds"), [("blue medium", 1.0), ("scout", 10.0)])
def test_a_new_mark_replaces_the_old_and_restarts_the_time(by, seconds):
    arena = hunters()
    arena.paint("red medium", by=by, seconds=seconds)
    paint_once(arena)
    mark = arena.state.paint[0, arena["scout"].pack, arena.names.index("red medium")]
    assert mark["ticks"] == TICKS
    assert arena.names[mark["painter"]] == "scout"


def test_of_two_painters_of_a_pack_in_a_tick_the_higher_spawn_place_counts():
    arena = hunters(catalog=changed(medium={"primary": "painter"}))
    arena.order("scout", primary=1)
    arena.order("blue medium", primary=1)
    arena.run()
    assert len(of_kind(arena.log, "paint")) == 2
    higher = max("scout", "blue medium", key=lambda name: arena[name].place)
    mark = arena.state.paint[0, arena["scout"].pack, arena.names.index("red medium")]
    assert arena.names[mark["painter"]] == higher


def test_paint_shows_its_target_through_terrain():
    arena = hunters()
    arena.put("red medium", 57, 32, WEST)
    arena.fill("concrete", x=(40, 41), y=(20, 50), z=(0, 10))
    arena.run()
    assert not arena.sees("blue medium", "red medium")
    arena.paint("red medium", by="scout")
    arena.run()
    assert arena.sees("blue medium", "red medium")
    assert arena.sees("scout", "red medium")


@pytest.mark.parametrize(("quality", "seen"), [(0.71, True), (0.69, False)])
def test_paint_is_visible_only_with_sufficient_sensor_quality(quality, seen):
    """ECM takes 0.85 x (1 - d / 50 m): at the distance where that is 1 - quality, the sensors have this quality."""
    distance = 50.0 * (1 - (1 - quality) / 0.85)
    arena = Arena({"medium": (5, 5, EAST), "blue scout": (5, 60)}, {"red medium": (5 + distance, 5), "heavy": (60, 60)},
                  catalog=changed(medium={"electronics": True}))  # fmt: skip
    arena.fill("concrete", x=(50, 51), y=(50, 64), z=(0, 10))
    arena.paint("heavy", by="blue scout")
    arena.order("red medium", ecm=1)
    arena.run()
    assert arena["medium"].quality == pytest.approx(quality)
    assert arena.sees("medium", "heavy") == seen


def test_no_assist_for_another_packs_paint():
    places = {f"{i} {name}": (5 + 4 * i, 5) for i, name in enumerate(PACK)}
    arena = Arena({**places, "other medium": (20, 30, EAST)}, {"red medium": (26, 30, WEST)})
    arena.paint("red medium", by="4 scout")
    arena["red medium"].armour = 1.0
    arena.order("other medium", primary=1)
    arena.run()
    assert arena.statistics("other medium")["kills"] == 1.0
    assert arena.statistics("4 scout")["assists"] == 0.0
