"""Masks from observations against the engine's own masks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from echelon_env import BattleEngine, opponents
from echelon_env.config.scenario import make_config
from echelon_env.evaluate import BattleNoise, Player
from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self, class_columns
from echelon_env.layout.parts import ALL_PARTS, CHOICE_STARTS, CHOICES, Part
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.possible import action_limits
from echelon_env.spaces.masks import MASK_SIZE
from echelon_env.spaces.masks import action_masks as engine_masks
from echelon_train.checkpoints.players import network_player
from echelon_train.policy import build_policy
from echelon_train.policy.action_masks import action_masks
from support.playing import scripted_actions
from train.policy.random_choices import LIMITS, living_observations

SMALL = NetworkConfig(width=8, head=8, set_width=4, map_channels=2)
OWN = STREAMS["self"].start
NAMES = {
    "target": [f"target {choice}" for choice in range(1 + TARGET_CHOICES)],
    "electronics": ["no electronics", "ecm", "eccm"],
    "display": [f"display {choice}" for choice in range(3)],
}


def names(part: Part) -> list[str]:
    """Names of a part's choices: none for standing still and holding fire."""
    single = ["" if choice == part.neutral else part.name for choice in range(len(part.values))]
    return NAMES.get(part.name, single)


ENTRIES = [name for part in ALL_PARTS for name in names(part)]


def allowed(observations: torch.Tensor, **options: bool) -> set[str]:
    (mask,) = action_masks(observations, LIMITS, **options)
    return {name for name, possible in zip(ENTRIES, mask.tolist(), strict=True) if possible and name}


def mech(**features: float) -> torch.Tensor:
    """The observation of a living medium mech with the primary weapon and the given features."""
    observations = living_observations(1)
    observations[:, OWN + class_columns(Self).start + 2] = 1.0
    for name, value in {"HAS_PRIMARY": 1.0, "LEGS": 1.0, **features}.items():
        observations[:, OWN + Self[name]] = value
    return observations


def test_the_layout_of_masks():
    assert len(ENTRIES) == CHOICES
    assert ENTRIES[:8] == ["throttle"] * 3 + [""] + ["throttle"] * 3 + ["strafe"]
    assert ENTRIES[CHOICE_STARTS["vent"] :][:4] == ["", "vent", "target 0", "target 1"]


MOTION = {"throttle", "strafe", "turn"}  # a medium has no jump jets


@pytest.mark.parametrize(
    ("features", "forbidden"),
    [
        ({}, set()),
        ({"HAS_PRIMARY": 0.0}, {"primary"}),
        ({"COOLDOWN_PRIMARY": 1.0}, {"primary"}),
        ({"COOLDOWN_PRIMARY": 0.01}, set()),
        ({"FALLEN": 1.0}, {"primary", *MOTION}),
        ({"FALLEN": 0.01}, set()),
        ({"SHUTDOWN": 1.0, "HEAT": 1.5}, {"primary", *MOTION, "display 1", "display 2"}),
        ({"SHUTDOWN": 1.0, "HEAT": 0.5}, set()),
        ({"LEGS": 0.0}, set()),
    ],
)
def test_the_reasons_of_a_refusal(features, forbidden):
    possible = allowed(mech(**features))
    everything = allowed(mech()) | {"primary"}
    messages = {f"comm_{number}" for number in range(8)}
    assert everything - possible - messages == forbidden
    assert messages <= possible or "SHUTDOWN" in features


def test_targets_need_a_filled_row():
    observations = mech(COOLDOWN_PRIMARY=1.0)
    observations[:, STREAMS["contacts_mask"].start + 1] = 1.0
    assert "target 2" in allowed(observations)
    assert "target 1" not in allowed(observations)


def test_the_dead_have_the_first_options_only():
    assert allowed(torch.zeros(1, OBSERVATION_DIM)) == {"target 0", "no electronics", "display 0"}


def test_rules_of_the_battle_set_the_limits():
    """A class without a column may be anything; slower decisions and longer cooldowns move the bounds."""
    config = make_config("skirmish")
    slow = replace(config, decision_repeat=2 * config.decision_repeat)
    known = slice(0, 4)
    before, after = action_limits(config), action_limits(slow)
    assert (after[known, :5] >= before[known, :5]).all()
    assert (after[known, :5] > before[known, :5]).any()
    strange = mech()
    strange[:, OWN + class_columns(Self).start : OWN + class_columns(Self).stop] = 0.0
    strange[:, OWN + Self.COOLDOWN_PRIMARY] = 1.0
    assert "primary" in allowed(strange)


def engine_entries(engine: BattleEngine) -> np.ndarray:
    """(R, CHOICES) bool: the engine's masks; messages need a mech that is awake."""
    masks = engine_masks(engine).reshape(-1, MASK_SIZE) != 0
    messages = np.repeat(engine.possibilities().awake.reshape(-1, 1), CHOICES - MASK_SIZE, axis=1)
    messages[:, [not name for name in ENTRIES[MASK_SIZE:]]] = True
    return np.concatenate([masks, messages], axis=1)


def player_of_another_battle() -> Player:
    policy = build_policy(replace(SMALL, communicate=True), 0)
    policy.set_battle(replace(make_config("duel"), decision_repeat=1))
    return network_player("elsewhere", policy)


@pytest.mark.parametrize(
    ("scenario", "changes"), [("skirmish", {}), ("duel", {}), ("skirmish", {"decision_repeat": 8})]
)
def test_masks_never_forbid_what_the_engine_allows(scenario, changes):
    """And of what the engine's masks forbid, they forbid all but a hundredth.

    The masks are those of a player whose policy is of another battle.
    """
    engine = BattleEngine(replace(make_config(scenario), **changes), num_battles=8)
    engine.reset(np.arange(8))
    players = (opponents.make("novice", 0, scenario), opponents.make("expert", 1, scenario))
    subject = player_of_another_battle().make(engine.config, BattleNoise(range(8), [0], engine.num_mechs))
    caught, refused = np.zeros(CHOICES), np.zeros(CHOICES)
    for _ in range(240):
        living = engine.alive.ravel() & ~np.repeat(engine.battle_over, engine.num_mechs)
        subject.act(engine.observations.reshape(-1, OBSERVATION_DIM))
        ours, theirs = subject.possible[living], engine_entries(engine)[living]
        wrong = theirs & ~ours
        assert not wrong.any(), {ENTRIES[entry] for entry in wrong.any(0).nonzero()[0]}
        caught += (~theirs & ~ours).sum(0)
        refused += (~theirs).sum(0)
        engine.step(scripted_actions(engine, players))
    shares = {name: caught[i] / refused[i] for i, name in enumerate(ENTRIES) if refused[i]}
    assert min(shares.values()) > 0.99, shares
    assert {"primary", "throttle", "target 1"} <= shares.keys()
