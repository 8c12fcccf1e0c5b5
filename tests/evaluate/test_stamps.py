import json
from dataclasses import dataclass, fields, replace
from importlib.metadata import version

import numpy as np
import pytest

import echelon_env
from echelon_env import make_config
from echelon_env.config.battle import AbilityConfig, RewardConfig, ZoneConfig
from echelon_env.config.schema import quantity
from echelon_env.evaluate import stamp
from echelon_env.evaluate.stamps import battle_hash, behaviour, document_hash
from evaluate.made import hash_of
from support.behaviour import measure


def test_a_stamp_names_versions_and_hashes():
    found = stamp()
    assert found["package"] == echelon_env.__version__
    assert (found["numpy"], found["numba"]) == (np.__version__, version("numba"))
    assert found["engine_hash"] == document_hash(behaviour()["engine"])
    assert found["opponents_hash"] == document_hash(behaviour()["opponents"])
    assert len({found["engine_hash"], found["opponents_hash"]}) == 2
    assert found["scipy"] == version("scipy")
    assert stamp() == found


@pytest.mark.long
def test_the_behaviour_equals_the_stored_digests():
    """After a deliberate change of a rule or a player run python tests/support/behaviour.py."""
    assert behaviour() == json.loads(json.dumps(measure()))


@dataclass(frozen=True, kw_only=True)
class LaterZone(ZoneConfig):
    """A zone with a field that an older version does not have."""

    drift: float = quantity(0.0, "m/s", since="9.9")


@dataclass(frozen=True, kw_only=True)
class ChangedZone(ZoneConfig):
    """A zone with a later field that does not declare `since`."""

    drift: float = quantity(0.0, "m/s")


def test_a_later_field_at_its_default_leaves_the_hash_equal():
    config = make_config("duel")
    zone = vars(config.zone)
    assert battle_hash(replace(config, zone=LaterZone(**zone))) == battle_hash(config)
    assert battle_hash(replace(config, zone=LaterZone(**zone, drift=0.5))) != battle_hash(config)
    assert battle_hash(replace(config, zone=ChangedZone(**zone))) != battle_hash(config)


def test_equal_configurations_have_the_same_hash():
    """Also where an integer stands for a float, which a file or a dict converts."""
    catalog = make_config("duel").catalog

    def config(number):
        changed = replace(catalog.mech_classes[0], top_speed=number)
        return make_config("duel", catalog=replace(catalog, mech_classes=(changed, *catalog.mech_classes[1:])))

    assert config(6) == config(6.0) == make_config(config(6).to_dict())
    assert len({battle_hash(each) for each in (config(6), config(6.0), make_config(config(6).to_dict()))}) == 1


def test_the_hash_excludes_only_the_rewards():
    config = make_config("duel")
    assert battle_hash(replace(config, rewards=RewardConfig(kill=1.0))) == battle_hash(config)
    changed = [make_config(config, abilities={field.name: False}) for field in fields(AbilityConfig)]
    changed.append(replace(config, max_steps=7))
    assert len({battle_hash(each) for each in (config, *changed)}) == 1 + len(changed)
    assert battle_hash(config) == hash_of(config)
    assert battle_hash(make_config(config, zone={"shown_seconds": 1.0})) != battle_hash(config)
