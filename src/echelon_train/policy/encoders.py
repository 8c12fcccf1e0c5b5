"""Encoders of a mech's observation, stream by stream or whole, and of a battle's global state."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Clock, Self, Stream, Unit, state_streams
from echelon_train.policy.pooling import max_and_mean

VECTORS = ("self", "objective")
TABLES = ("contacts", "squad", "intel", "comm")
"""Streams whose rows are a set; the stream of the name with ``_mask`` says which of them are filled."""
MAPS = ("ego_map", "battle_map")


_ALIVE = STREAMS["self"].start + Self.ALIVE
_OBJECTIVE = slice(STREAMS["self"].row_width, STREAMS["self"].row_width + STREAMS["objective"].row_width)
"""Columns of what is fused that the objective takes."""


class SetEncoder(nn.Module):
    """A set of rows as one vector, whatever their order: Zaheer et al. 2017, "Deep Sets".

    Two linear layers with ReLU embed each row by itself. The vector is the greatest and the mean value of every entry
    of the embeddings, and log(1 + n) of the number n of rows, which those do not tell; of an empty set it is zero. Only
    filled rows are computed, for in a battle most are not.

    Parameters
    ----------
    row_width
        Features of a row.
    set_width
        Units of its embedding.
    """

    def __init__(self, row_width: int, set_width: int) -> None:
        super().__init__()
        self.features_dim = 2 * set_width + 1
        self.dense = False
        """Whether all rows are computed: then the last bits of a set hang on no other set's number of rows."""
        self.layers = nn.Sequential(
            nn.Linear(row_width, set_width), nn.ReLU(), nn.Linear(set_width, set_width), nn.ReLU()
        )

    def forward(self, table: Tensor, filled: Tensor) -> Tensor:
        """Encode sets (R, rows, row_width), where `filled` (R, rows) bool, as (R, features_dim)."""
        if self.dense:
            return self.forward_rows(table, filled)[0]
        owner, number = filled.nonzero(as_tuple=True)
        return self._pool(self.layers(table[owner, number]), owner, filled)

    def forward_rows(self, table: Tensor, filled: Tensor) -> tuple[Tensor, Tensor]:
        """Like `forward`, and the rows' embeddings (R, rows, set_width), not negative, zero where not filled."""
        if self.dense:
            rows = torch.where(filled.unsqueeze(2), self.layers(table), 0.0)
            count = filled.sum(1, keepdim=True)
            mean = rows.sum(1) / count.clamp_min(1)
            return torch.cat([rows.amax(1), mean, count.to(rows.dtype).log1p()], 1), rows
        owner, number = filled.nonzero(as_tuple=True)
        embedded = self.layers(table[owner, number])
        rows = embedded.new_zeros(*filled.shape, embedded.shape[1]).index_put((owner, number), embedded)
        return self._pool(embedded, owner, filled), rows

    @staticmethod
    def _pool(embedded: Tensor, owner: Tensor, filled: Tensor) -> Tensor:
        """Pool the embeddings (n, set_width) of the filled rows by the set (n,) that each is of."""
        count = filled.sum(1, keepdim=True).to(embedded.dtype)
        return torch.cat([*max_and_mean(embedded, owner, count.clamp_min(1.0)), count.log1p()], 1)


class MapEncoder(nn.Module):
    """A square map as one vector: a convolution of stride 2, and a linear layer with weights for each place.

    The kernel is 2 x 2 cells on a map of even side, which it tiles, and 3 x 3, overlapping, on one of odd side.

    Parameters
    ----------
    stream
        The map's layout, its shape (side, side, features of a cell).
    channels
        Channels of the convolution.
    """

    def __init__(self, stream: Stream, channels: int) -> None:
        side, _, cell_width = stream.shape
        kernel = 2 + side % 2
        places = ((side - kernel) // 2 + 1) ** 2
        super().__init__()
        self.features_dim = 8 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(cell_width, channels, kernel, 2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(places * channels, self.features_dim),
            nn.ReLU(),
        )

    def forward(self, cells: Tensor) -> Tensor:
        """Encode maps (R, side, side, features of a cell) as (R, features_dim)."""
        encoded: Tensor = self.layers(cells.permute(0, 3, 1, 2).contiguous())
        return encoded


class FlatEncoder(BaseFeaturesExtractor):  # type: ignore[misc]
    """One linear layer with LayerNorm and ReLU over any flat observation.

    Parameters
    ----------
    observation_space
        A Box of one axis.
    features_dim
        Width of the features.

    Raises
    ------
    ValueError
        For another space.
    """

    def __init__(self, observation_space: spaces.Space[Any], features_dim: int) -> None:
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
            raise ValueError(f"FlatEncoder: expected a Box of one axis, got {observation_space}")
        super().__init__(observation_space, features_dim)
        self.fusion = fusion(observation_space.shape[0], features_dim)
        initialize(self)

    def forward(self, observations: Tensor) -> Tensor:
        """Encode observations (R, D) as features (R, features_dim)."""
        features: Tensor = self.fusion(observations)
        return features


class StreamEncoder(BaseFeaturesExtractor):  # type: ignore[misc]
    """A mech's flat observation, each of its streams by its nature: vectors as they are, tables as sets, maps as such.

    The rows' numbers do not matter to the features. What names rows by number, the action's target, needs the rows'
    own embeddings beside them: `forward_rows`.

    Parameters
    ----------
    observation_space
        The space of a mech's flat observation, (OBSERVATION_DIM,).
    features_dim
        Width of the features.
    set_width
        Units of the embedding of a row.
    map_channels
        Channels of the convolutions over the maps.

    Raises
    ------
    ValueError
        For another space.
    """

    def __init__(
        self, observation_space: spaces.Space[Any], features_dim: int, set_width: int, map_channels: int
    ) -> None:
        if observation_space.shape != (OBSERVATION_DIM,):
            raise ValueError(
                f"StreamEncoder: expected the space of a mech's flat observation, of shape ({OBSERVATION_DIM},), "
                f"got {observation_space}"
            )
        super().__init__(observation_space, features_dim)
        sets = {name: SetEncoder(STREAMS[name].row_width, set_width) for name in TABLES}
        maps = {name: MapEncoder(STREAMS[name], map_channels) for name in MAPS}
        width = sum(STREAMS[name].row_width for name in VECTORS)
        width += sum(each.features_dim for each in sets.values()) + sum(each.features_dim for each in maps.values())
        self.contacts = sets.pop("contacts")
        self.others = nn.ModuleDict(sets)
        self.maps = nn.ModuleDict(maps)
        self.fusion = fusion(width, features_dim)
        initialize(self)

    def forward(self, observations: Tensor) -> Tensor:
        """Encode observations (R, OBSERVATION_DIM) as features (R, features_dim)."""
        return self.forward_rows(observations)[0]

    def forward_rows(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Encode observations (R, OBSERVATION_DIM), and the contacts that an action can name as its target.

        Returns
        -------
        features
            (R, features_dim), not negative.
        contacts
            The first contact rows' embeddings (R, TARGET_CHOICES, set_width), not negative, zero where not filled.
        """
        fused, contacts = self._fuse(observations)
        return self.fusion[1:](fused), contacts

    def forward_active(self, observations: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """What `forward_rows` gives, in less time where many are dead, with the contacts of some mechs only.

        The dead see their objective alone: all else is encoded for one of them.

        Parameters
        ----------
        observations
            (R, OBSERVATION_DIM).
        active
            (n,) int64: the numbers of the mechs whose contacts are wanted.

        Returns
        -------
        Features (R, features_dim) and contacts (n, TARGET_CHOICES, set_width).
        """
        alive = observations[:, _ALIVE] > 0.5
        living, dead = alive.nonzero().flatten(), (~alive).nonzero().flatten()
        fused, contacts = self._fuse(leading(observations, torch.cat([living, dead[:1]])))
        objectives = observations[:, STREAMS["objective"].part].index_select(0, dead)
        first = cast("nn.Linear", self.fusion[0])
        fused, one = fused.tensor_split([len(living)])
        rest = one + (objectives - objectives[:1]) @ first.weight[:, _OBJECTIVE].t()
        place = torch.where(alive, alive.cumsum(0), len(living) + (~alive).cumsum(0)) - 1
        features = leading(torch.cat([fused, rest]), place)
        return self.fusion[1:](features), leading(contacts, place[active].clamp_max(len(living)))

    def _fuse(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """The fused features before LayerNorm, and the contacts."""
        contacts, rows = self.contacts.forward_rows(*table(observations, "contacts"))
        encoded = [cut(observations, STREAMS[name]) for name in VECTORS]
        encoded.append(contacts)
        encoded += [encoder(*table(observations, name)) for name, encoder in self.others.items()]
        encoded += [encoder(cut(observations, STREAMS[name])) for name, encoder in self.maps.items()]
        return self.fusion[0](torch.cat(encoded, 1)), rows[:, :TARGET_CHOICES]


class BattleEncoder(nn.Module):
    """The global state of a battle of any even number of mechs, for a centralised critic.

    The mechs of either team are a set; those that are dead, and padding, have `Unit.ALIVE` 0 and are not in it.

    Parameters
    ----------
    features_dim
        Width of the features.
    set_width
        Units of the embedding of a mech.
    map_channels
        Channels of the convolution over the map.
    """

    def __init__(self, features_dim: int, set_width: int, map_channels: int) -> None:
        super().__init__()
        self.features_dim = features_dim
        self.mechs = SetEncoder(len(Unit), set_width)
        self.map = MapEncoder(STREAMS["battle_map"], map_channels)
        self.fusion = fusion(len(Clock) + 2 * self.mechs.features_dim + self.map.features_dim, features_dim)
        initialize(self)

    def forward(self, states: Tensor) -> Tensor:
        """Encode states (R, S), laid out by `state_streams`, as features (R, features_dim).

        Raises ValueError if S is not the width of the state of an even number of mechs.
        """
        base = state_streams(0)["battle_map"].stop
        teams, rest = divmod(states.shape[1] - base, 2 * len(Unit))
        if teams < 1 or rest:
            raise ValueError(
                f"BattleEncoder: expected states of {base} + {len(Unit)} x mechs entries, for an even number of "
                f"mechs, got {tuple(states.shape)}"
            )
        streams = state_streams(2 * teams)
        units = cut(states, streams["units"]).reshape(2 * len(states), teams, len(Unit))
        mechs = self.mechs(units, units[..., Unit.ALIVE] > 0.5).view(len(states), -1)
        clock, cells = cut(states, streams["clock"]), cut(states, streams["battle_map"])
        features: Tensor = self.fusion(torch.cat([clock, mechs, self.map(cells)], 1))
        return features


def cut(vectors: Tensor, stream: Stream) -> Tensor:
    """A stream's part of vectors (R, D), in the stream's shape: (R, *shape)."""
    return vectors[:, stream.part].view(len(vectors), *stream.shape)


def leading(tensor: Tensor, rows: Tensor) -> Tensor:
    """The rows (n,) int64 of a tensor, no copy of them if they are its first ones in their order."""
    first = torch.arange(len(rows), device=rows.device)
    return tensor[: len(rows)] if torch.equal(rows, first) else tensor.index_select(0, rows)


def table(observations: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """A table's rows (R, rows, F) in observations (R, OBSERVATION_DIM), and which are filled (R, rows) bool."""
    return cut(observations, STREAMS[name]), cut(observations, STREAMS[f"{name}_mask"]) > 0.5


def fusion(width: int, features_dim: int) -> nn.Sequential:
    """The layer that makes features of everything that has been encoded."""
    return nn.Sequential(nn.Linear(width, features_dim), nn.LayerNorm(features_dim), nn.ReLU())


def initialize(module: nn.Module) -> None:
    """Orthogonal weights with the gain of ReLU, and biases of zero, for all of a module's layers."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
