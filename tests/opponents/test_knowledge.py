from dataclasses import replace

import numpy as np
import pytest

from echelon_env import BattleEngine, make_config, opponents
from echelon_env.config.catalog import DEFAULT_CATALOG, MOUNTS
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import Self
from echelon_env.opponents.knowledge import UNKNOWN, make_knowledge
from support.playing import scripted_actions

MEDIUM = Self.IS_MEDIUM - Self.IS_SCOUT
SMOKING = {"smoke_radius": 4.0, "smoke_duration": 10.0}


def style(changes, **mounts):
    """The STYLE of a medium with other weapons, after changes to weapons by name."""
    weapons = tuple(replace(weapon, **changes.get(weapon.name, {})) for weapon in DEFAULT_CATALOG.weapons)
    classes = tuple(replace(kind, **mounts) if kind.name == "medium" else kind for kind in DEFAULT_CATALOG.mech_classes)
    catalog = replace(DEFAULT_CATALOG, weapons=weapons, mech_classes=classes)
    return make_knowledge(make_config("skirmish", catalog=catalog)).styles[MEDIUM]


def mounted(style):
    return [MOUNTS[mount] for mount in style["order"] if mount >= 0]


def test_weapons_are_ordered_by_damage_per_heat_without_smoke():
    medium = style({})
    assert mounted(medium) == ["tertiary", "primary", "secondary"]
    assert MOUNTS[medium["painter"]] == "secondary"
    assert MOUNTS[medium["smoke"]] == "special"


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


def test_further_smoke_is_not_fired_like_a_gun():
    medium = style({}, primary="smoke")
    assert MOUNTS[medium["smoke"]] == "primary"
    assert mounted(medium) == ["tertiary", "secondary"]


@pytest.mark.parametrize("level", ["novice", "expert"])
def test_a_gun_whose_shells_smoke_is_fired(level):
    weapons = tuple(
        replace(weapon, **SMOKING) if weapon.name == "autocannon" else weapon for weapon in DEFAULT_CATALOG.weapons
    )
    config = make_config(
        "duel-open", catalog=replace(DEFAULT_CATALOG, weapons=weapons), blue=("medium",), red=("medium",)
    )
    engine = BattleEngine(config, 2)
    players = tuple(opponents.make(level, seed, config) for seed in range(2))
    engine.reset([0, 1])
    pulls = 0
    for _ in range(200):
        actions = scripted_actions(engine, players)
        pulls += int((actions[..., Action.TERTIARY] > 0).sum())
        engine.step(actions)
    assert pulls > 20


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
