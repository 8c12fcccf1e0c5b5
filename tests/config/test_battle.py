import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon_env import BattleConfig, BattleEngine, ConfigError, make_config
from echelon_env.config.catalog import DEFAULT_CATALOG, MEDIUM, Catalog


def test_a_configuration_is_accepted_unchanged():
    config = make_config("duel")
    assert make_config(config) is config
    assert make_config(config.to_dict()) == config


@given(
    size=st.integers(60, 200),
    dt=st.floats(0.01, 0.1),
    biomes=st.lists(st.sampled_from(["urban", "forest", "barrens"]), min_size=1),
    zone=st.floats(-10, 10),
)
def test_a_configuration_survives_json(size, dt, biomes, zone):
    config = make_config("skirmish", dt=dt, terrain={"size": size, "biomes": biomes}, rewards={"zone": zone})
    assert BattleConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_nested_overrides_change_only_the_named_fields():
    config = make_config("duel", terrain={"size": np.int64(64)}, max_steps=10)
    assert config.terrain == dataclasses.replace(make_config("duel").terrain, size=64)
    assert config.max_steps == 10
    assert config.blue == ("medium",)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"max_stepz": 3}, "unknown config key 'max_stepz'; did you mean 'max_steps'"),
        ({"terrain": {"hight": 8}}, "unknown config key 'terrain.hight'; did you mean 'height'"),
        ({"terrain": {"height": 40}}, "'terrain.height': expected a number from 8 to 32 m, got 40"),
        ({"terrain": {"size": 40}}, "terrain.size 40 m is too small.*10 mechs each.*need 67 m"),
        ({"terrain": {"spawn_spacing": 3.0}}, r"spawn_spacing.*3\.5 m.*got 3"),
        ({"terrain": 3}, "'terrain': expected a mapping, got int"),
        ({"terrain": {"biomes": ["urbn"]}}, "unknown biome 'urbn'; did you mean 'urban'"),
        ({"terrain": {"biomes": []}}, "at least one biome"),
        ({"blue": ["hevy"]}, "unknown mech class 'hevy'; did you mean 'heavy'"),
        ({"red": []}, "'red': expected 1 to 64 mech classes, got 0"),
        ({"blue": "medium"}, "'blue': expected a sequence, got 'medium'"),
        ({"blue": [3]}, r"'blue\[0\]': expected str, got 3"),
        ({"dt": float("nan")}, "'dt': expected a number from 0.001 to 0.1 s, got nan"),
        ({"dt": "fast"}, "'dt': expected float, got 'fast'"),
        ({"max_steps": 1.5}, "'max_steps': expected int, got 1.5"),
        ({"max_steps": True}, "'max_steps': expected int, got True"),
        ({"time_limit": "stop"}, "'time_limit': got 'stop'"),
        ({"zone": {"min_radius": 9.0}}, "max_radius 8.0 is less than zone.min_radius 9.0"),
        ({"terrain": {1: 3}}, "unknown config key 'terrain.1'"),
        ({"dead_agents": np.array(["persist", "x"])}, "'dead_agents'"),
        ({"rewards": {"kill": 10**400}}, "'rewards.kill': expected a number"),
        ({"rewards": {"gamma": 1.5}}, "'rewards.gamma': expected a number from 0 to 1"),
        ({"catalog": {"weapons": [], "mech_classes": []}}, "unknown mech class 'heavy'"),
        ({"catalog": {"weapons": [{"name": "x"}], "mech_classes": []}}, "missing"),
    ],
)
def test_impossible_configurations_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        make_config("battle", **overrides)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"primary": "lazer"}, "primary of 'medium': unknown weapon 'lazer'; did you mean 'laser'"),
        ({"top_speed": 25.0}, "'medium' moves 1.25 m per tick"),
        ({"armour": 0.0}, "armour of 'medium': expected more than 0"),
        ({"height": 21.0}, "terrain.height 20 is less than the height of 'medium'"),
        ({"contact_slots": 13}, "contact_slots of 'medium': expected 1 to 12, got 13"),
        ({"tonnage": float("inf")}, "tonnage"),
        ({"length": 1e-17}, "length': expected a number from 0.1 to 16"),
        ({"legs": 0.0}, "legs of 'medium': expected more than 0"),
        ({"special": "smok"}, "special of 'medium': unknown weapon 'smok'; did you mean 'smoke'"),
        ({"wreck_probability": 1.1}, "wreck_probability': expected a number from 0"),
        ({"electronics": "yes"}, "electronics': expected bool, got 'yes'"),
    ],
)
def test_impossible_catalogues_are_refused(change, message):
    medium = dataclasses.replace(MEDIUM, **change)
    with pytest.raises(ConfigError, match=message):
        make_config("duel", catalog=Catalog(weapons=DEFAULT_CATALOG.weapons, mech_classes=(medium,)))


def test_catalogues_with_duplicate_names_are_refused():
    medium = dataclasses.replace(MEDIUM, armour=999.0)
    with pytest.raises(ConfigError, match="mech classes of different names"):
        make_config("duel", catalog=Catalog(weapons=DEFAULT_CATALOG.weapons, mech_classes=(MEDIUM, medium)))
    for name in ("", "x" * 65, "\x1b]0;x\x07"):
        classes = (dataclasses.replace(MEDIUM, name=name),)
        with pytest.raises(ConfigError, match="mech classes with names of 1 to 64 printable characters"):
            make_config("duel", catalog=dataclasses.replace(DEFAULT_CATALOG, mech_classes=classes))


@pytest.mark.parametrize(
    ("weapon", "change", "message"),
    [
        ("autocannon", {"speed": 1e-7}, "speed of 'autocannon': expected at least 0.1 m/s, got 1e-07"),
        ("autocannon", {"range": 1e5}, "'autocannon' can fly for 80001 ticks of 0.05 s, expected at most 10000"),
        ("missiles", {"lifetime": 501.0}, "'missiles' can fly for 10021 ticks"),
        ("missiles", {"lifetime": 0.0}, "lifetime of 'missiles': expected more than 0"),
        ("gauss", {"speed": 0.0}, "speed of 'gauss': expected at least"),
        ("gauss", {"cooldown": 1e308}, "cooldown': expected a number from 0.* to 1000000"),
        ("smoke", {"charges": 2**31}, "charges': expected a number from 0.* to 1000000"),
        ("laser", {"splash_radius": 1.0}, "'laser': a hitscan weapon has neither splash nor smoke"),
        ("smoke", {"smoke_duration": 0.0}, "smoke_duration of 'smoke': expected more than 0"),
        ("laser", {"arc": 361.0}, r"arc'?: expected a number from 0.* to 360"),
        ("gauss", {"damage": float("nan")}, "damage"),
        ("gauss", {"flight": "beam"}, "flight': got 'beam'"),
        ("gauss", {"splash_share": 1.5}, "splash_share': expected a number from 0"),
        ("smoke", {"charges": 1.5}, "charges': expected int, got 1.5"),
    ],
)
def test_impossible_weapons_are_refused(weapon, change, message):
    weapons = tuple(dataclasses.replace(w, **change) if w.name == weapon else w for w in DEFAULT_CATALOG.weapons)
    with pytest.raises(ConfigError, match=message):
        make_config("duel", catalog=dataclasses.replace(DEFAULT_CATALOG, weapons=weapons))


def test_impossible_materials_and_combat_rules_are_refused():
    swapped = DEFAULT_CATALOG.materials[1], DEFAULT_CATALOG.materials[0], *DEFAULT_CATALOG.materials[2:]
    with pytest.raises(ConfigError, match=r"expected the names \['air', 'dirt'.* in this order, got \['dirt', 'air'"):
        make_config("duel", catalog=dataclasses.replace(DEFAULT_CATALOG, materials=swapped))
    air = dataclasses.replace(DEFAULT_CATALOG.materials[0], blocks_movement=True), *DEFAULT_CATALOG.materials[1:]
    with pytest.raises(ConfigError, match="blocks_movement of 'air': expected False, which maps rely on, got True"):
        make_config("duel", catalog=dataclasses.replace(DEFAULT_CATALOG, materials=air))
    with pytest.raises(ConfigError, match=r"sensors.max_quality 0.1 is less than sensors.min_quality 0.25"):
        make_config("duel", sensors={"max_quality": 0.1})
    with pytest.raises(ConfigError, match=r"physics.max_stability 100.0 is less than physics.risen_stability 500.0"):
        make_config("duel", physics={"risen_stability": 500.0})
    with pytest.raises(ConfigError, match=r"'physics.max_heat': expected a number from 1.01"):
        make_config("duel", physics={"max_heat": 1.0})
    with pytest.raises(ConfigError, match=r"aim_high 0.1 is less than combat.aim_low 0.5"):
        make_config("duel", combat={"aim_low": 0.5, "aim_high": 0.1})
    with pytest.raises(ConfigError, match=r"'combat.friendly_fire': expected bool, got 1"):
        make_config("duel", combat={"friendly_fire": 1})


def test_numpy_numbers_become_plain():
    config = BattleConfig(max_steps=np.int64(3), dt=np.float32(0.0625))
    assert json.loads(json.dumps(config.to_dict()))["max_steps"] == 3


def test_unknown_scenarios_are_refused():
    with pytest.raises(ConfigError, match=r"unknown scenario 'skirmsh'; did you mean 'skirmish'\? \(valid: ambush,"):
        make_config("skirmsh")
    with pytest.raises(ConfigError, match="expected a scenario's name or file, a BattleConfig or its dict, got int"):
        make_config(3)


def test_durations_are_whole_ticks():
    config = make_config("duel")
    assert config.ticks(0.6) == 12
    assert config.ticks(0.001) == 1
    assert config.decision_seconds == 0.25
    assert make_config("battle", dt=0.001).ticks(1.0) == 1000


def test_an_entry_of_the_catalogue_is_changed_by_name():
    changes = {"weapons": {"laser": {"damage": 20}}, "mech_classes": {"scout": {"armour": 50, "special": None}}}
    config = make_config("duel", catalog=changes)
    laser, scout = config.catalog.weapons[config.catalog.weapon_index("laser")], config.catalog.mech_classes[0]
    assert (laser.damage, scout.name, scout.armour, scout.special) == (20.0, "scout", 50.0, None)
    again = make_config(config, catalog={"weapons": {"laser": {"heat": 1.0}}})
    assert again.catalog.weapons[config.catalog.weapon_index("laser")] == dataclasses.replace(laser, heat=1.0)
    assert BattleConfig.from_dict({"catalog": changes}).catalog == config.catalog
    unchanged = [each for each in config.catalog.weapons if each.name != "laser"]
    assert unchanged == [each for each in DEFAULT_CATALOG.weapons if each.name != "laser"]


@pytest.mark.parametrize(
    ("weapons", "message"),
    [
        ({"lasser": {}}, r"unknown config key 'catalog.weapons.lasser'; did you mean 'laser'"),
        ({"laser": {"damge": 1}}, r"unknown config key 'catalog.weapons.laser.damge'; did you mean 'damage'"),
        ({"laser": 3}, r"config key 'catalog.weapons.laser': expected a mapping, got 3"),
        ({"laser": {"damage": "x"}}, r"damage.*expected float, got 'x'"),
    ],
)
def test_a_wrong_change_of_the_catalogue_is_refused(weapons, message):
    with pytest.raises(ConfigError, match=message):
        make_config("duel", catalog={"weapons": weapons})
    with pytest.raises(ConfigError, match=message):
        BattleConfig.from_dict({"catalog": {"weapons": weapons}})


def test_catalogues_that_are_too_large_are_refused():
    many = tuple(dataclasses.replace(MEDIUM, name=f"m{i}") for i in range(200))
    with pytest.raises(ConfigError, match="expected at most 100 mech classes, got 201"):
        make_config("duel", catalog=Catalog(weapons=DEFAULT_CATALOG.weapons, mech_classes=(MEDIUM, *many)))
    shower = dataclasses.replace(DEFAULT_CATALOG.weapons[2], cooldown=0.05, heat=0.0)
    weapons = tuple(shower if weapon.name == "missiles" else weapon for weapon in DEFAULT_CATALOG.weapons)
    catalog = dataclasses.replace(DEFAULT_CATALOG, weapons=weapons)
    config = make_config(blue=["heavy"] * 64, red=["heavy"] * 64, catalog=catalog, terrain={"size": 400})
    with pytest.raises(ConfigError, match=r"can hold .* events in a decision, expected at most 1000000"):
        BattleEngine(config)
    fog = [dataclasses.replace(each, charges=0, smoke_duration=1e6, cooldown=0.05) for each in weapons if each.charges]
    catalog = dataclasses.replace(DEFAULT_CATALOG, weapons=(*(each for each in weapons if not each.charges), *fog))
    with pytest.raises(ConfigError, match=r"can hold \d{8,} smoke clouds, expected at most 1000000"):
        BattleEngine(make_config("duel", blue=["heavy", "light"], red=["light"], catalog=catalog))
    with pytest.raises(ConfigError, match=r"1000000000000 battles of this configuration need \d+\.\d GiB, more than"):
        BattleEngine("duel", 10**12)
