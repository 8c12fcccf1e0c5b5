"""Choices: the initial bias, masks, and conversion to and from the engine's actions."""

import numpy as np
import pytest
import torch

from echelon_env.layout.actions import ACTION_DIM, TARGET_CHOICES, Action
from echelon_env.layout.parts import ALL_PARTS, CHOICE_STARTS, CHOICES, NUM_PARTS, PARTS, SIZES
from echelon_env.spaces.actions import read_action
from echelon_train.policy.action_masks import action_masks
from echelon_train.policy.choices import environment_actions, nearest_choices, neutral_choices
from echelon_train.policy.distributions import TARGET_LOGITS, ActionDistribution, initial_bias
from train.policy.random_choices import LIMITS, living_observations, random_batch

EVERYTHING = torch.ones(1, CHOICES, dtype=torch.bool)


def probabilities(logits: torch.Tensor, masks: torch.Tensor, part: str) -> list[float]:
    columns = slice(CHOICE_STARTS[part], CHOICE_STARTS[part] + next(len(p.values) for p in ALL_PARTS if p.name == part))
    return torch.softmax(logits.masked_fill(~masks, -torch.inf)[0, columns], 0).tolist()


def test_target_logits_select_contact_rows():
    for target in range(TARGET_CHOICES):
        logits = torch.zeros(1, CHOICES)
        logits[:, TARGET_LOGITS][:, target] = 5.0
        action = environment_actions(ActionDistribution(logits, EVERYTHING).mode())
        assert action[0, Action.TARGET_0 : Action.TARGET_4 + 1].nonzero().tolist() == [[target]]


def test_the_initial_distribution_is_as_documented():
    logits = initial_bias()[None]
    assert logits.dtype == torch.float32
    for part, size in zip(ALL_PARTS, SIZES, strict=True):
        expected = {"vent": [0.9, 0.1], "electronics": [0.8, 0.1, 0.1]}.get(part.name, [1 / size] * size)
        assert probabilities(logits, EVERYTHING, part.name) == pytest.approx(expected)
    masks = action_masks(living_observations(1), LIMITS)
    assert probabilities(logits, masks, "electronics") == [1.0, 0.0, 0.0]
    assert probabilities(logits, masks, "primary") == [1.0, 0.0]
    assert probabilities(logits, masks, "target") == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_actions_equal_those_of_the_multi_discrete_format():
    choices = torch.cat([random_batch(300, seed=7)[2], neutral_choices(torch.device("cpu"))[None]])
    assert [set(column.tolist()) for column in choices.T] == [set(range(size)) for size in SIZES]
    messages = slice(Action.COMM_0, Action.COMM_7 + 1)
    actions = environment_actions(choices).numpy()
    expected = read_action("multi_discrete", choices[:, : len(PARTS)].numpy(), batch=len(choices)).copy()
    expected[:, messages] = np.linspace(-1, 1, 7, dtype=np.float32)[choices[:, len(PARTS) :].numpy()]
    np.testing.assert_array_equal(actions, expected)
    assert actions[-1].nonzero()[0].tolist() == [Action.DISPLAY_NEAREST]


def test_actions_become_the_choices_that_they_came_from():
    _, _, choices = random_batch(300, seed=8)
    assert torch.equal(nearest_choices(environment_actions(choices)), choices)
    with pytest.raises(ValueError, match=rf"expected actions \(R, {ACTION_DIM}\), got \(2, 3\)"):
        nearest_choices(torch.zeros(2, 3))


def test_numbers_become_the_nearest_choices():
    actions = torch.zeros(1, ACTION_DIM)
    for entry, value in ((Action.THROTTLE, 0.3), (Action.STRAFE, -0.9), (Action.JET, 0.4), (Action.TURN, 7.0)):
        actions[0, entry] = value
    actions[0, Action.VENT], actions[0, Action.TARGET_3] = 0.01, 0.2
    found = nearest_choices(actions)
    assert found.shape == (1, NUM_PARTS) and found.dtype == torch.int64
    values = {part.name: part.values[index] for part, index in zip(ALL_PARTS, found[0].tolist(), strict=True)}
    motion = [values[name][0] for name in ("throttle", "strafe", "jet", "turn")]
    assert motion == pytest.approx([1 / 3, -1.0, 1 / 3, 1.0])
    assert values["vent"] == (1.0,) and values["primary"] == (0.0,) and values["target"] == (0, 0, 0, 1, 0)
    assert values["display"] == (1, 0, 0)
