"""Masks from observations against the kernel's conditions and the engine's masks."""

import numpy as np
import pytest

from echelon_env import BattleEngine, ConfigError, make_config, opponents
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.networks.possible import CONDITIONS, action_limits, find_conditions
from echelon_env.spaces import MASK_SIZE, MASK_SLICES, NEUTRAL_CHOICES, PARTS, ObservedMasks, action_masks
from echelon_env.spaces.actions import DISCRETE_CHOICES


def observed(scenario: str, every: int = 10, steps: int = 400):
    """(rows, D) observations of mechs in battles of experts, with the engine at that moment."""
    config = make_config(scenario)
    engine = BattleEngine(config, 2)
    engine.reset([3, 4])
    policy = opponents.make("expert", 0, config)
    for step in range(steps):
        if engine.battle_over.any():  # which observations do not show
            break
        rows = engine.observations.reshape(-1, engine.observation_dim)
        if step % every == 0:
            yield rows.copy(), engine
        engine.step(policy.act(rows).reshape(engine.num_battles, engine.num_mechs, -1))


@pytest.mark.parametrize("action_format", ["multi_discrete", "discrete"])
@pytest.mark.parametrize("scenario", ["skirmish", "duel-open"])
def test_they_allow_what_the_engine_allows_and_little_else(scenario, action_format):
    masks = ObservedMasks(make_config(scenario), action_format)
    more = total = forbidden = 0
    for rows, engine in observed(scenario):
        got = masks(rows)
        exact = action_masks(engine, action_format).reshape(got.shape).astype(np.bool_)
        assert not (exact & ~got).any()
        more, total, forbidden = more + int((got & ~exact).sum()), total + got.size, forbidden + int((~got).sum())
    assert more <= 0.03 * total
    assert forbidden > 0.1 * total


def test_the_conditions_are_those_of_the_kernel():
    config = make_config("skirmish")
    masks, limits = ObservedMasks(config), action_limits(config)
    for rows, _ in observed("skirmish", every=100):
        expected = np.zeros((len(rows), CONDITIONS), np.bool_)
        for seen, conditions in zip(rows, expected, strict=True):
            find_conditions(limits, seen, conditions)
        np.testing.assert_array_equal(masks._conditions(rows), expected)


def test_dead_mechs_have_the_neutral_choices():
    masks = ObservedMasks(make_config("duel"))(np.zeros((2, OBSERVATION_DIM), np.float32))
    assert masks.shape == (2, MASK_SIZE)
    for part, neutral in zip(PARTS, NEUTRAL_CHOICES, strict=True):
        assert np.flatnonzero(masks[1, MASK_SLICES[part.name]]).tolist() == [neutral]
    discrete = ObservedMasks(make_config("duel"), "discrete")(np.zeros((2, OBSERVATION_DIM), np.float32))
    assert discrete.shape == (2, len(DISCRETE_CHOICES))
    assert np.flatnonzero(discrete[0]).tolist() == [0]


def test_errors():
    with pytest.raises(ConfigError, match="action_format: expected a format of choices, got 'continuous'"):
        ObservedMasks(make_config("duel"), "continuous")
    with pytest.raises(ValueError, match=r"observations: expected shape \(rows, 902\), got \(2, 5\)"):
        ObservedMasks(make_config("duel"))(np.zeros((2, 5), np.float32))
