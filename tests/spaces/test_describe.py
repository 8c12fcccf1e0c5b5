from dataclasses import replace

import numpy as np
import pytest

import echelon_env
from echelon_env import BattleEngine
from echelon_env.config.catalog import HEAVY, SCOUT
from echelon_env.layout.actions import ACTION_HIGH, ACTION_LOW, Action
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, feature_names, observation_bounds
from echelon_env.spaces import BLOCKS, PARTS, action_masks, split_mask
from echelon_env.spaces.describe import describe_action, describe_observation
from oracles.configs import ALL_OFF
from support.fights import CONFIGS, fight


def test_every_entry_of_an_observation_is_described():
    described = describe_observation()
    low, high = observation_bounds()
    assert [feature.index for feature in described] == list(range(OBSERVATION_DIM))
    assert [feature.name for feature in described] == feature_names()
    np.testing.assert_array_equal([feature.low for feature in described], low)
    np.testing.assert_array_equal([feature.high for feature in described], high)
    assert all(feature.meaning and feature.filled for feature in described)
    contacts = STREAMS["contacts"]
    third = described[contacts.start + 2 * contacts.row_width]
    assert (third.stream, third.row, third.name) == ("contacts", 2, "contacts.2.direction_forward")
    cell = described[STREAMS["ego_map"].start + 5]
    assert (cell.stream, cell.row, cell.name) == ("ego_map", 2, "ego_map.2.hazard")


def test_every_entry_of_an_action_is_described():
    described = describe_action()
    assert [(entry.index, entry.name, entry.meaning) for entry in described] == [
        (entry.value, entry.name.lower(), entry.meaning) for entry in Action
    ]
    assert {(entry.low, entry.high) for entry in described} == {(ACTION_LOW, ACTION_HIGH)}
    assert [entry.block for entry in described] == [block.name for block in BLOCKS for _ in block.entries]
    assert all(entry.available for entry in described)


def test_entries_that_a_class_lacks_are_described_as_empty():
    empty = [feature.name for feature in describe_observation(SCOUT) if not feature.filled]
    assert empty == ["self.cooldown_secondary", "self.cooldown_tertiary", "self.has_secondary", "self.has_tertiary"]
    empty = {feature.name.rsplit(".", 1)[0] for feature in describe_observation(HEAVY) if not feature.filled}
    rows = {f"{stream}.{row}" for stream in ("contacts", "contacts_mask") for row in range(5, 12)}
    assert empty == {"self"} | rows
    assert [entry.name for entry in describe_action(HEAVY) if not entry.available] == ["jet", "ecm", "eccm"]
    assert [entry.name for entry in describe_action(SCOUT) if not entry.available] == ["secondary", "tertiary"]
    blind = replace(SCOUT, observes_zone=False)
    hidden = [each for each in describe_observation(blind) if not each.filled and each.stream != "self"]
    assert {each.stream for each in hidden} == {"objective", "contacts", "squad"}
    assert [each.name for each in describe_observation(blind) if each.stream == "objective" and each.filled] == [
        "objective.time_left"
    ]
    assert all(each.name.endswith("in_zone") for each in hidden if each.stream != "objective")
    turret = replace(SCOUT, top_speed=0.0, turn_rate=0.0)
    lacking = [entry.name for entry in describe_action(turret) if not entry.available]
    assert lacking == ["throttle", "strafe", "turn", "secondary", "tertiary"]


@pytest.mark.parametrize("name", CONFIGS)
def test_entries_that_a_class_lacks_are_always_zero(name):
    engine = BattleEngine(CONFIGS[name], 2)
    classes = engine.config.mech_classes
    seen = np.zeros((len(classes), OBSERVATION_DIM), bool)
    masks = np.zeros((len(classes), action_masks(engine).shape[-1]), bool)
    kinds = engine.state.mechs["mech_class"]
    for seed in range(2):
        for _ in fight(engine, seed):
            for kind in range(len(classes)):
                seen[kind] |= (engine.observations[kinds == kind] != 0).any(axis=0)
                masks[kind] |= (action_masks(engine)[kinds == kind] != 0).any(axis=0)
    for kind, mech_class in enumerate(classes):
        filled = np.array([each.filled for each in describe_observation(mech_class, engine.config.abilities)])
        assert not (seen[kind] & ~filled).any()
        available = {each.name for each in describe_action(mech_class, engine.config.abilities) if each.available}
        for part, allowed in zip(PARTS, split_mask(masks[kind]), strict=True):
            for choice, values in enumerate(part.values):
                used = {entry.name.lower() for entry, value in zip(part.entries, values, strict=True) if value}
                assert not allowed[choice] or choice == part.neutral or used <= available


def test_entries_that_are_switched_off_are_described_as_empty():
    env = echelon_env.parallel_env("skirmish", abilities=ALL_OFF)
    empty = [entry.name for entry in env.describe_observation("blue_4") if not entry.filled]
    streams = {name.split(".")[0] for name in empty}
    assert streams == {"self", "contacts", "intel", "intel_mask", "comm", "comm_mask"}
    assert {"self.has_electronics", "self.jammed", "self.by_danger"} <= {*empty}
    assert not {"self.by_distance", "self.has_target", "contacts.3.is_target"} & {*empty}
    useless = [entry.block for entry in env.describe_action("blue_4") if not entry.available]
    assert {*useless} == {"triggers", "target", "electronics", "display", "comm"}  # a scout has two weapons
    silent = echelon_env.make_config("skirmish", abilities={"messages": False}).abilities
    assert {entry.block for entry in describe_action(None, silent) if not entry.available} == {"comm"}
