from dataclasses import replace

import numpy as np

from echelon_env import make_config
from echelon_env.config.catalog import DEFAULT_CATALOG, MOUNTS
from echelon_env.layout.observations import Self
from echelon_env.opponents.knowledge import UNKNOWN, make_knowledge

MEDIUM = Self.IS_MEDIUM - Self.IS_SCOUT
SMOKING = {"smoke_radius": 4.0, "smoke_duration": 10.0}


def style(changes, **mounts):
    """The STYLE of a medium with a painter and other weapons, after changes to weapons by name."""
    mounts = {"secondary": "painter", **mounts}
    weapons = tuple(replace(weapon, **changes.get(weapon.name, {})) for weapon in DEFAULT_CATALOG.weapons)
    classes = tuple(replace(kind, **mounts) if kind.name == "medium" else kind for kind in DEFAULT_CATALOG.mech_classes)
    catalog = replace(DEFAULT_CATALOG, weapons=weapons, mech_classes=classes)
    return make_knowledge(make_config("skirmish", catalog=catalog)).styles[MEDIUM]


def mounted(style):
    return [MOUNTS[mount] for mount in style["order"] if mount >= 0]


def test_weapons_are_ordered_by_effect_per_heat_without_smoke():
    medium = style({})
    assert mounted(medium) == ["tertiary", "primary", "secondary"]
    assert MOUNTS[medium["painter"]] == "secondary"
    assert MOUNTS[medium["smoke"]] == "special"
    flames = style({"flamer": {"damage": 3.0}}, tertiary="flamer")  # less damage per heat than the laser, but it heats
    assert mounted(flames) == ["tertiary", "primary", "secondary"]


def test_a_gun_whose_shells_smoke_is_a_gun():
    medium = style({"autocannon": SMOKING}, special=None)
    assert mounted(medium) == ["tertiary", "primary", "secondary"]
    assert medium["smoke"] == -1
    assert MOUNTS[style({"autocannon": SMOKING})["smoke"]] == "special"


def test_a_painter_whose_shells_smoke_is_a_painter():
    medium = style({"painter": {"flight": "straight", "speed": 15.0, **SMOKING}}, special=None)
    assert MOUNTS[medium["painter"]] == "secondary"
    assert medium["smoke"] == -1
    assert "secondary" in mounted(medium)


def test_classes_without_a_one_hot_share_the_row_of_the_first():
    classes = tuple(
        kind if kind.name in ("scout", "light") else replace(kind, name=f"my {kind.name}")
        for kind in DEFAULT_CATALOG.mech_classes
    )
    config = make_config(
        "skirmish", catalog=replace(DEFAULT_CATALOG, mech_classes=classes), blue=("my heavy",), red=("my medium",)
    )
    known, game = make_knowledge(config), make_knowledge(make_config("skirmish"))
    np.testing.assert_array_equal(known.classes["weapon"][UNKNOWN], game.classes["weapon"][MEDIUM])
    assert known.styles[UNKNOWN] == game.styles[MEDIUM]
