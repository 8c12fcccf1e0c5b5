"""Raw actions: the initial bias, masks, and conversion to the engine's actions."""

import math

import numpy as np
import pytest
import torch

from echelon_env.layout.actions import ACTION_DIM, TARGET_CHOICES, Action
from echelon_env.networks.possible import MASKS
from echelon_env.networks.weights import PARAMETERS
from echelon_env.spaces.actions import BLOCKS, read_action
from echelon_train.policy.action_masks import action_masks
from echelon_train.policy.distributions import TARGET_LOGITS, parameter_bias
from echelon_train.policy.raw_actions import LABEL_BOUND, environment_actions, raw_actions
from train.policy.hybrid import (
    FIRST_LOGIT,
    KIND_SLICES,
    LIMITS,
    MAX_STD,
    MIN_STD,
    NUMBERS,
    RAW_SLICES,
    distribution_of,
    living_observations,
    log_std,
    random_batch,
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
    for possible in (torch.ones(1, MASKS, dtype=torch.bool), action_masks(living_observations(1), LIMITS)):
        logits = parameters[0, FIRST_LOGIT:].masked_fill(~possible[0, :-NUMBERS], -math.inf)
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


def test_actions_become_the_raw_actions_that_they_came_from():
    _, _, raw = random_batch(300, seed=8)
    raw = raw.float()
    actions = environment_actions(raw)
    expected = raw.clone()
    bound = math.atanh(LABEL_BOUND)
    for name in ("motion", "comm"):
        expected[:, RAW_SLICES[name]] = raw[:, RAW_SLICES[name]].clamp(-bound, bound)
    torch.testing.assert_close(raw_actions(actions), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=rf"expected actions \(R, {ACTION_DIM}\), got \(2, 3\)"):
        raw_actions(torch.zeros(2, 3))
