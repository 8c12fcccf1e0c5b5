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
    dt=st.floats(0.01, 0.06),
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
        ({"terrain": {"size": 40}}, "terrain.size 40 m is too small.*teams of 10.*need 67 m"),
        ({"terrain": {"spawn_spacing": 3.0}}, r"spawn_spacing.*3\.5 m.*got 3"),
        ({"terrain": {"biomes": ["urbn"]}}, "unknown biome 'urbn'; did you mean 'urban'"),
        ({"blue": ["hevy"]}, "unknown mech class 'hevy'; did you mean 'heavy'"),
        ({"red": []}, "'red': expected 1 to 64 mech classes, got 0"),
        ({"blue": "medium"}, "'blue': expected a sequence, got 'medium'"),
        ({"dt": float("nan")}, "'dt': expected a number from 0.001 to 0.1 s, got nan"),
        ({"max_steps": True}, "'max_steps': expected int, got True"),
        ({"time_limit": "stop"}, "'time_limit': got 'stop'"),
        ({"zone": {"min_radius": 9.0}}, "max_radius 8.0 is less than zone.min_radius 9.0"),
        ({"dead_agents": np.array(["persist", "x"])}, "'dead_agents'"),
        ({"rewards": {"kill": 10**400}}, "'rewards.kill': expected a number"),
        ({"catalog": {"weapons": [], "mech_classes": []}}, "unknown mech class 'heavy'"),
        ({"catalog": {"weapons": [{"name": "x"}], "mech_classes": []}}, "missing"),
        ({"catalog": {"materials": {"air": {"blocks_movement": True}}}}, "blocks_movement of 'air': expected False"),
        ({"sensors": {"max_quality": 0.1}}, "sensors.max_quality 0.1 is less than sensors.min_quality 0.25"),
        ({"physics": {"risen_stability": 500.0}}, "physics.max_stability 100.0 is less than physics.risen_stability"),
        ({"combat": {"aim_low": 0.5, "aim_high": 0.1}}, "aim_high 0.1 is less than combat.aim_low 0.5"),
        ({"combat": {"friendly_fire": 1}}, "'combat.friendly_fire': expected bool, got 1"),
        ({"abilities": {"message": False}}, r"abilities\.message'; did you mean 'messages'"),
        *(
            ({"catalog": {"mech_classes": {"medium": change}}}, message)
            for change, message in (
                ({"primary": "lazer"}, "primary of 'medium': unknown weapon 'lazer'; did you mean 'laser'"),
                ({"top_speed": 25.0}, "'medium' moves 1.25 m per tick, expected"),
                ({"top_speed": 10.0, "jet_acceleration": 9.0}, "'medium' moves 1.1 m per tick with its jets"),
                ({"armour": 0.0}, "armour': expected a number from 0.001 to"),
                ({"height": 21.0}, "terrain.height 20 is less than the height of 'medium'"),
                ({"contact_slots": 13}, "contact_slots': expected a number from 1 to 12, got 13"),
                ({"electronics": "yes"}, "electronics': expected bool, got 'yes'"),
                ({"name": "heavy"}, "mech classes of different names"),
                *(({"name": name}, "names of 1 to 64 printable") for name in ("", "x" * 65, "\x1b]0;x\x07")),
            )
        ),
        *(
            ({"catalog": {"weapons": {weapon: change}}}, message)
            for weapon, change, message in (
                ("autocannon", {"speed": 1e-7}, "speed of 'autocannon': expected at least 0.1 m/s, got 1e-07"),
                ("autocannon", {"range": 1e5}, "'autocannon' can fly for 80001 ticks of 0.05 s, expected at most"),
                ("missiles", {"lifetime": 501.0}, "'missiles' can fly for 10021 ticks"),
                ("missiles", {"lifetime": 0.0}, "lifetime of 'missiles': expected more than 0"),
                ("smoke", {"charges": 2**31}, "charges': expected a number from 0.* to 1000000"),
                ("laser", {"splash_radius": 1.0}, "'laser': a hitscan weapon has neither splash nor smoke"),
                ("smoke", {"smoke_duration": 0.0}, "smoke_duration of 'smoke': expected more than 0"),
                ("gauss", {"flight": "beam"}, "flight': got 'beam'"),
                ("lasser", {}, r"unknown config key 'catalog.weapons.lasser'; did you mean 'laser'"),
                ("laser", {"damge": 1}, r"unknown config key 'catalog.weapons.laser.damge'; did you mean 'damage'"),
                ("laser", {"fires_blind": True}, "'laser': a hitscan weapon cannot fire blind, it needs a target"),
                ("laser", 3, r"config key 'catalog.weapons.laser': expected a mapping, got 3"),
                ("laser", {"damage": "x"}, r"damage.*expected float, got 'x'"),
            )
        ),
    ],
)
def test_impossible_configurations_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        make_config("battle", **overrides)
    with pytest.raises(ConfigError, match=message):
        BattleConfig.from_dict(overrides)  # the scenario `battle` has all defaults


def test_numpy_numbers_become_plain():
    config = BattleConfig(max_steps=np.int64(3), dt=np.float32(0.0625))
    assert json.loads(json.dumps(config.to_dict()))["max_steps"] == 3


def test_unknown_scenarios_are_refused():
    with pytest.raises(ConfigError, match=r"unknown scenario 'skirmsh'; did you mean 'skirmish'\? \(valid: ambush,"):
        make_config("skirmsh")
    with pytest.raises(ConfigError, match="expected a scenario's name or file, a BattleConfig or its dict, got int"):
        make_config(3)


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
