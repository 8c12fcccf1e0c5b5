import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from echelon_env.layout.observations import (
    STREAMS,
    Unit,
    observation_bounds,
    state_streams,
)
from echelon_env.networks.weights import TABLES
from echelon_train.policy.encoders import BattleEncoder, SetEncoder, StreamEncoder, stream_view
from train.policy.battle_data import battle_data

SPACE = spaces.Box(*observation_bounds(), dtype=np.float32)
SET_WIDTH = 6


def stream_encoder(seed: int = 0) -> StreamEncoder:
    torch.manual_seed(seed)
    return StreamEncoder(SPACE, 16, SET_WIDTH, 4)


def battle_encoder(seed: int = 0) -> BattleEncoder:
    torch.manual_seed(seed)
    return BattleEncoder(16, SET_WIDTH)


def filled(observations: Tensor, name: str) -> Tensor:
    return stream_view(observations, STREAMS[f"{name}_mask"]) > 0.5


def padding(observations: Tensor) -> Tensor:
    """(R, D) bool: entries of empty rows."""
    outside = torch.zeros_like(observations, dtype=torch.bool)
    for name in TABLES:
        stream_view(outside, STREAMS[name])[~filled(observations, name)] = True
    return outside


@pytest.mark.parametrize("garbage", [1e9, -3.0, math.nan, math.inf])
def test_values_in_padding_have_no_effect(garbage: float):
    observations = battle_data()[0]
    encoder = stream_encoder()
    expected = encoder.forward_rows(observations)
    found = encoder.forward_rows(observations.masked_fill(padding(observations), garbage))
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_permuting_a_set_changes_no_feature(name: str):
    observations = battle_data()[0]
    stream, mask = STREAMS[name], STREAMS[f"{name}_mask"]
    order = torch.randperm(stream.rows, generator=torch.Generator().manual_seed(3))
    permuted = observations.clone()
    stream_view(permuted, stream)[:] = stream_view(observations, stream)[:, order]
    stream_view(permuted, mask)[:] = stream_view(observations, mask)[:, order]
    assert not torch.equal(permuted, observations)
    encoder = stream_encoder()
    torch.testing.assert_close(encoder(permuted), encoder(observations), rtol=0, atol=1e-6)


def test_a_set_equals_a_computation_by_hand():
    encoder = SetEncoder(2, 2)
    with torch.no_grad():
        for layer in (encoder.first, encoder.layers[1]):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
    table = torch.tensor([[[1.0, 4.0], [3.0, -2.0], [9.0, 9.0]], [[7.0, 7.0], [7.0, 7.0], [7.0, 7.0]]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    pooled, rows = encoder.forward_rows(table, mask)
    torch.testing.assert_close(pooled[0], torch.tensor([3.0, 4.0, 2.0, 2.0, math.log(3.0)]))
    assert (pooled[1] == 0).all()
    torch.testing.assert_close(rows[0], torch.tensor([[1.0, 4.0], [3.0, 0.0], [0.0, 0.0]]))
    assert torch.equal(encoder(table, mask), pooled)


def test_each_team_of_the_state_is_one_set():
    encoder, (_, _, states) = battle_encoder(), battle_data()
    stream = state_streams(20)["units"]
    expected = encoder(states)
    order = torch.cat([torch.randperm(10), 10 + torch.randperm(10)])
    permuted = states.clone()
    stream_view(permuted, stream)[:] = stream_view(states, stream)[:, order]
    torch.testing.assert_close(encoder(permuted), expected, rtol=0, atol=1e-6)
    stream_view(permuted, stream)[:] = stream_view(states, stream).roll(10, 1)
    assert (encoder(permuted) - expected).abs().max() > 1e-2


def test_the_battle_encoder_takes_any_number_of_mechs():
    encoder, (_, _, states) = battle_encoder(), battle_data("skirmish")
    assert states.shape[1] == max(stream.stop for stream in state_streams(10).values())
    own, enemy = stream_view(states, state_streams(10)["units"]).split(5, 1)
    empty = torch.zeros(len(states), 3, len(Unit))
    units = torch.cat([own, empty, enemy, empty], 1)
    padded = torch.cat([states[:, state_streams(10)["clock"].part], units.flatten(1)], 1)
    torch.testing.assert_close(encoder(padded), encoder(states), rtol=0, atol=1e-6)


def test_states_of_another_width_are_rejected():
    width = max(stream.stop for stream in state_streams(3).values())
    for wrong in (width, width + 1, 136, 5):
        with pytest.raises(ValueError, match="even number of mechs, got"):
            battle_encoder()(torch.zeros(2, wrong))
