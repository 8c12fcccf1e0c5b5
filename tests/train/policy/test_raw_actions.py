"""Raw actions: the initial bias, masks, and conversion to the engine's actions."""

import math

import numpy as np
import pytest
import torch

from echelon_env import BattleEngine, opponents
from echelon_env.config.scenario import make_config
from echelon_env.layout.actions import ACTION_DIM, TARGET_CHOICES, Action
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.spaces.actions import BLOCKS, possibilities, read_action
from echelon_train.policy.distributions import (
    MASKS,
    PARAMETERS,
    RAW_DIM,
    TARGET_LOGITS,
    action_masks,
    environment_actions,
    parameter_bias,
)
from support.playing import scripted_actions
from train.policy.hybrid import (
    FIRST_LOGIT,
    KIND_SLICES,
    MAX_STD,
    MIN_STD,
    NUMBERS,
    RAW_SLICES,
    distribution_of,
    living_observations,
    log_std,
    random_batch,
    shifted,
)


def test_target_logits_select_contact_rows():
    for target in range(TARGET_CHOICES):
        parameters = torch.zeros(1, PARAMETERS)
        parameters[:, TARGET_LOGITS][:, target] = 5.0
        action = environment_actions(distribution_of(parameters, torch.ones(1, MASKS, dtype=torch.bool)).mode())
        assert action[0, Action.TARGET_0 : Action.TARGET_4 + 1].nonzero().tolist() == [[target]]


def test_the_initial_distribution_is_as_documented():
    parameters = parameter_bias(0.6, MIN_STD, MAX_STD)[None]
    assert parameters.shape == (1, PARAMETERS)
    assert parameters.dtype == torch.float32
    torch.testing.assert_close(parameters[:, :NUMBERS], torch.zeros(1, NUMBERS))
    torch.testing.assert_close(log_std(parameters).exp(), torch.full((1, NUMBERS), 0.6))
    for possible in (torch.ones(1, MASKS, dtype=torch.bool), action_masks(living_observations(1))):
        logits = parameters[0, FIRST_LOGIT:].masked_fill(~possible[0], -math.inf)
        *weapons, vent = torch.sigmoid(logits[KIND_SLICES["triggers"]]).tolist()
        assert weapons == [0.5 if possible.all() else 0.0] * 4
        assert vent == pytest.approx(0.1)
        choices = {
            name: torch.softmax(logits[KIND_SLICES[name]], 0).tolist() for name in ("target", "electronics", "display")
        }
        assert choices["display"] == pytest.approx([1 / 3] * 3)
        if possible.all():
            assert choices["target"] == pytest.approx([1 / 6] * 6)
            assert choices["electronics"] == pytest.approx([0.8, 0.1, 0.1])
        else:
            assert choices["target"] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
            assert choices["electronics"] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("stds", [(0.0, 0.6, 2.0), (0.6, 0.6, 2.0), (0.05, 2.0, 2.0), (0.05, math.nan, 2.0)])
def test_invalid_standard_deviations_are_rejected(stds):
    least, initial, most = stds
    with pytest.raises(ValueError, match=r"expected 0 < min_std < initial_std < max_std, got min_std"):
        parameter_bias(initial, least, most)


@pytest.mark.parametrize(
    ("feature", "block", "entries"),
    [
        (Self.HAS_PRIMARY, "triggers", [0]),
        (Self.HAS_SECONDARY, "triggers", [1]),
        (Self.HAS_TERTIARY, "triggers", [2]),
        (Self.HAS_SPECIAL, "triggers", [3]),
        (Self.HAS_ELECTRONICS, "electronics", [1, 2]),
    ],
)
def test_a_feature_of_the_observation_allows_an_entry(feature, block, entries):
    observations = living_observations(1)
    before = action_masks(observations)
    observations[:, STREAMS["self"].start + feature] = 1.0
    new = (action_masks(observations) & ~before)[0].nonzero()[:, 0].tolist()
    assert new == [KIND_SLICES[block].start + entry for entry in entries]


@pytest.mark.parametrize("row", range(STREAMS["contacts_mask"].rows))
def test_a_filled_contact_row_allows_a_target(row):
    observations = living_observations(1)
    before = action_masks(observations)
    observations[:, STREAMS["contacts_mask"].start + row] = 1.0
    new = (action_masks(observations) & ~before)[0].nonzero()[:, 0].tolist()
    assert new == ([KIND_SLICES["target"].start + 1 + row] if row < TARGET_CHOICES else [])


def test_only_living_mechs_can_vent_and_choose_a_display():
    for observations, alive in ((living_observations(1), True), (torch.zeros(1, OBSERVATION_DIM), False)):
        mask = action_masks(observations)[0]
        assert mask[KIND_SLICES["triggers"]].tolist() == [False] * 4 + [alive]
        assert mask[KIND_SLICES["target"]].tolist() == [True] + [False] * TARGET_CHOICES
        assert mask[KIND_SLICES["electronics"]].tolist() == [True, False, False]
        assert mask[KIND_SLICES["display"]].tolist() == [True, alive, alive]


@pytest.fixture(scope="module")
def battle_states() -> list[tuple[BattleEngine, dict[str, np.ndarray]]]:
    """An engine, and snapshots of it in the course of two battles, also after deaths."""
    engine = BattleEngine(make_config("skirmish"), num_battles=2)
    engine.reset([1, 2])
    players = (opponents.make("novice", 0), opponents.make("expert", 1))
    states = []
    for decision in range(240):
        if engine.battle_over.any():
            break
        if decision % 20 == 0:
            states.append((engine, engine.snapshot()))
        engine.step(scripted_actions(engine, players))
    return states


def test_masks_agree_with_the_engine(battle_states):
    dead = 0
    for engine, state in battle_states:
        engine.restore(state)
        can = possibilities(engine)
        masks = action_masks(torch.from_numpy(engine.out.observations.reshape(-1, OBSERVATION_DIM)))
        alive = can.present.ravel()
        expected = np.concatenate((can.mounted & can.loaded, can.present[..., None]), -1).reshape(len(alive), -1)
        np.testing.assert_array_equal(masks[:, KIND_SLICES["triggers"]].numpy(), expected & alive[:, None])
        contacts = can.contacts.reshape(len(alive), -1) & alive[:, None]
        np.testing.assert_array_equal(masks[:, shifted(KIND_SLICES["target"], 1)][:, :TARGET_CHOICES].numpy(), contacts)
        electronics = can.electronics.ravel() & alive
        np.testing.assert_array_equal(masks[:, KIND_SLICES["electronics"].start + 1].numpy(), electronics)
        dead += int((~alive).sum())
    assert dead


def test_the_engine_ignores_actions_of_dead_mechs(battle_states):
    engine, state = battle_states[-1]
    engine.restore(state)
    assert (~engine.alive).any()
    observations = torch.from_numpy(engine.out.observations.reshape(-1, OBSERVATION_DIM))
    noise = torch.randn(len(observations), RAW_DIM, generator=torch.Generator().manual_seed(0))
    bias = parameter_bias(0.6, MIN_STD, MAX_STD).expand(len(observations), -1)
    actions = environment_actions(distribution_of(bias, action_masks(observations)).sample(noise)).numpy()
    actions = actions.reshape(*engine.alive.shape, ACTION_DIM)
    expected = np.zeros(Action.COMM_0 - Action.PRIMARY)
    expected[Action.DISPLAY_NEAREST - Action.PRIMARY] = 1.0  # the engine takes the first of equal numbers
    for action in actions[~engine.alive]:
        np.testing.assert_array_equal(action[Action.PRIMARY : Action.COMM_0], expected)
    results = []
    for dead_actions in (actions[~engine.alive], 0.0):
        engine.restore(state)
        tried = actions.copy()
        tried[~engine.alive] = dead_actions
        engine.step(tried)
        results.append(engine.snapshot())
    for name, array in results[0].items():
        np.testing.assert_array_equal(array, results[1][name], err_msg=name)


def test_actions_equal_those_of_the_dict_format():
    _, _, raw = random_batch(300, seed=7)
    raw = raw.float()
    columns = {name: raw[:, part] for name, part in RAW_SLICES.items()}
    as_dict = {
        block.name: {
            "numbers": lambda part: torch.tanh(part).numpy(),
            "switches": lambda part: part.numpy().astype(np.int8),
            "choice": lambda part: part[:, 0].numpy().astype(np.int64),
        }[block.kind](columns[block.name])
        for block in BLOCKS
    }
    for block in BLOCKS:
        if block.kind == "choice":
            assert set(as_dict[block.name]) == set(range(block.choices))
    np.testing.assert_array_equal(environment_actions(raw).numpy(), read_action("dict", as_dict, batch=len(raw)))
