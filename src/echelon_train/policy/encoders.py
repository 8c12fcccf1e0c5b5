"""Encoders of a mech's flat observation, one network per stream or one for all, and of a battle's global state."""

from __future__ import annotations

from typing import Any, cast

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import STREAMS, Clock, Self, Stream, Unit, state_streams
from echelon_env.networks.weights import TABLES, VECTORS
from echelon_train.policy.initial_weights import orthogonal
from echelon_train.policy.pooling import max_and_mean

_ALIVE = STREAMS["self"].start + Self.ALIVE
_OBJECTIVE = slice(STREAMS["self"].row_width, STREAMS["self"].row_width + STREAMS["objective"].row_width)
"""Columns of the objective in the fusion layer's input."""


class SetEncoder(nn.Module):
    """Permutation-invariant encoder of a set of rows: Zaheer et al. 2017, "Deep Sets".

    Two linear layers with ReLU embed each row. The encoding is the maximum and the mean of the embeddings over the
    rows, and log(1 + n) of the number of rows n, which the pooled values do not show. An empty set is encoded as zeros.
    Only filled rows are embedded, because most rows are empty in a battle.

    Parameters
    ----------
    row_width
        Features of a row.
    set_width
        Width of a row's embedding.
    context_width
        Features of a set's owner, which the embeddings of its rows also depend on; 0: none.
    hidden_width
        Width of the hidden layer; `set_width` by default.
    """

    def __init__(self, row_width: int, set_width: int, context_width: int = 0, hidden_width: int | None = None) -> None:
        super().__init__()
        self.features_dim = 2 * set_width + 1
        self.dense = False
        """Embed empty rows too: then not even the last bits of an encoding depend on the other sets in a batch."""
        hidden = hidden_width or set_width
        self.context = nn.Linear(context_width, hidden, bias=False) if context_width else None
        self.first = nn.Linear(row_width, hidden)
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(hidden, set_width), nn.ReLU())

    def forward(self, table: Tensor, filled: Tensor, context: Tensor | None = None) -> Tensor:
        """Encode sets (R, rows, row_width) with the mask `filled` (R, rows) bool as (R, features_dim).

        `context` is (R, context_width), or None if `context_width` is 0.
        """
        if self.dense:
            return self.forward_rows(table, filled, context)[0]
        owner, number = filled.nonzero(as_tuple=True)
        return self._pool(self._embed(table[owner, number], context, owner), owner, filled)

    def _embed(self, rows: Tensor, context: Tensor | None, owner: Tensor | None = None) -> Tensor:
        """Embed the rows (n, row_width) of the sets `owner` (n,), or all rows (R, rows, row_width)."""
        hidden = self.first(rows)
        if self.context is not None:
            assert context is not None
            own = self.context(context)
            hidden = hidden + (own.unsqueeze(1) if owner is None else own[owner])
        embedded: Tensor = self.layers(hidden)
        return embedded

    def forward_rows(
        self, table: Tensor, filled: Tensor, context: Tensor | None = None, first: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Like `forward`, and also return the embeddings of the `first` rows, or of all: (R, first, set_width).

        They are non-negative, and zero for empty rows.
        """
        first = filled.shape[1] if first is None else first
        if self.dense:
            rows = torch.where(filled.unsqueeze(2), self._embed(table, context), 0.0)
            count = filled.sum(1, keepdim=True)
            mean = rows.sum(1) / count.clamp_min(1)
            return torch.cat([rows.amax(1), mean, count.to(rows.dtype).log1p()], 1), rows[:, :first]
        owner, number = filled.nonzero(as_tuple=True)
        embedded = self._embed(table[owner, number], context, owner)
        kept = (number < first).nonzero().flatten()
        place = (owner * first + number).index_select(0, kept)
        rows = embedded.new_zeros(len(filled) * first, embedded.shape[1])
        rows = rows.index_copy(0, place, embedded.index_select(0, kept))
        return self._pool(embedded, owner, filled), rows.view(len(filled), first, -1)

    @staticmethod
    def _pool(embedded: Tensor, owner: Tensor, filled: Tensor) -> Tensor:
        """Pool the embeddings (n, set_width) of filled rows; `owner` (n,) is the index of each row's set."""
        count = filled.sum(1, keepdim=True).to(embedded.dtype)
        return torch.cat([*max_and_mean(embedded, owner, count.clamp_min(1.0)), count.log1p()], 1)


class MapEncoder(nn.Module):
    """Encoder of a square map: a convolution of 3 x 3 cells and stride 2, then a linear layer over all positions.

    Parameters
    ----------
    stream
        The map's stream, of shape (side, side, features of a cell).
    channels
        Channels of the convolution.
    """

    def __init__(self, stream: Stream, channels: int) -> None:
        side, _, cell_width = stream.shape
        places = ((side - 3) // 2 + 1) ** 2
        super().__init__()
        self.features_dim = 8 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(cell_width, channels, 3, 2),
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
    """One linear layer with LayerNorm and ReLU on a flat observation of any width."""

    def __init__(self, observation_space: spaces.Box, features_dim: int) -> None:
        super().__init__(observation_space, features_dim)
        self.fusion = fusion(observation_space.shape[0], features_dim)
        orthogonal(self)

    def forward(self, observations: Tensor) -> Tensor:
        """Encode observations (R, D) as features (R, features_dim)."""
        features: Tensor = self.fusion(observations)
        return features


class StreamEncoder(BaseFeaturesExtractor):  # type: ignore[misc]
    """Encoder of a mech's flat observation: vectors unchanged, tables by `SetEncoder`, the map by `MapEncoder`.

    The embedding of a contact also depends on the mech itself: whether a contact is a good target depends on the own
    weapons, cooldowns and heat. The features do not depend on the order of a table's rows. An action names its target
    by the number of a contact row, so the target head needs the embeddings of these rows as well: see `forward_rows`.

    Parameters
    ----------
    observation_space
        The space of a mech's flat observation, (OBSERVATION_DIM,).
    features_dim
        Width of the features.
    set_width
        Width of a row's embedding.
    map_channels
        Channels of the convolution over the map.
    """

    def __init__(self, observation_space: spaces.Box, features_dim: int, set_width: int, map_channels: int) -> None:
        super().__init__(observation_space, features_dim)
        sets = {name: SetEncoder(STREAMS[name].row_width, set_width) for name in TABLES if name != "contacts"}
        width = sum(STREAMS[name].row_width for name in VECTORS)
        own = STREAMS["self"].row_width
        self.contacts = SetEncoder(STREAMS["contacts"].row_width, set_width, own, 2 * set_width)
        self.others = nn.ModuleDict(sets)
        self.map = MapEncoder(STREAMS["ego_map"], map_channels)
        encoders: list[Any] = [self.contacts, *sets.values(), self.map]
        width += sum(each.features_dim for each in encoders)
        self.fusion = fusion(width, features_dim)
        orthogonal(self)

    def forward(self, observations: Tensor) -> Tensor:
        """Encode observations (R, OBSERVATION_DIM) as features (R, features_dim)."""
        return self.forward_rows(observations)[0]

    def forward_rows(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Encode observations (R, OBSERVATION_DIM) and the contacts that an action can target.

        Returns
        -------
        features
            (R, features_dim), non-negative.
        contacts
            (R, TARGET_CHOICES, set_width): embeddings of the first contact rows, non-negative, zero for empty rows.
        """
        fused, contacts = self._fuse(observations)
        return self.fusion[1:](fused), contacts

    def forward_active(self, observations: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Like `forward_rows`, but faster when many mechs are dead, and with the contacts of `active` rows only.

        Observations of dead mechs differ only in the objective. So one of them is encoded in full, and the others
        reuse its result with their own objective.

        Parameters
        ----------
        observations
            (R, OBSERVATION_DIM).
        active
            (n,) int64: indices of the rows whose contacts are returned.

        Returns
        -------
        Features (R, features_dim) and contacts (n, TARGET_CHOICES, set_width).
        """
        alive = observations[:, _ALIVE] > 0.5
        living, dead = alive.nonzero().flatten(), (~alive).nonzero().flatten()
        fused, contacts = self._fuse(select_rows(observations, torch.cat([living, dead[:1]])))
        objectives = observations[:, STREAMS["objective"].part].index_select(0, dead)
        first = cast("nn.Linear", self.fusion[0])
        fused, one = fused.tensor_split([len(living)])
        rest = one + (objectives - objectives[:1]) @ first.weight[:, _OBJECTIVE].t()
        place = torch.where(alive, alive.cumsum(0), len(living) + (~alive).cumsum(0)) - 1
        features = select_rows(torch.cat([fused, rest]), place)
        return self.fusion[1:](features), select_rows(contacts, place[active].clamp_max(len(living)))

    def _fuse(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """The fusion layer's output before LayerNorm, and the contacts' embeddings."""
        own = observations[:, STREAMS["self"].part]
        contacts, rows = self.contacts.forward_rows(*table_and_mask(observations, "contacts"), own, TARGET_CHOICES)
        encoded = [stream_view(observations, STREAMS[name]) for name in VECTORS]
        encoded.append(contacts)
        encoded += [encoder(*table_and_mask(observations, name)) for name, encoder in self.others.items()]
        encoded.append(self.map(stream_view(observations, STREAMS["ego_map"])))
        return self.fusion[0](torch.cat(encoded, 1)), rows


class BattleEncoder(nn.Module):
    """Encoder of a battle's global state for a centralised critic, for any even number of mechs.

    The living mechs of each team are one set. Dead mechs and padding have `Unit.ALIVE` 0 and are left out.

    Parameters
    ----------
    features_dim
        Width of the features.
    set_width
        Width of a mech's embedding.
    """

    def __init__(self, features_dim: int, set_width: int) -> None:
        super().__init__()
        self.features_dim = features_dim
        self.mechs = SetEncoder(len(Unit), set_width)
        self.fusion = fusion(len(Clock) + 2 * self.mechs.features_dim, features_dim)
        orthogonal(self)

    def forward(self, states: Tensor) -> Tensor:
        """Encode states (R, S) in the layout of `state_streams` as features (R, features_dim).

        Raises ValueError if S is not the width of the state for an even number of mechs.
        """
        teams, rest = divmod(states.shape[1] - len(Clock), 2 * len(Unit))
        if teams < 1 or rest:
            raise ValueError(
                f"BattleEncoder: expected states of {len(Clock)} + {len(Unit)} x mechs entries, for an even number of "
                f"mechs, got {tuple(states.shape)}"
            )
        streams = state_streams(2 * teams)
        units = stream_view(states, streams["units"]).reshape(2 * len(states), teams, len(Unit))
        mechs = self.mechs(units, units[..., Unit.ALIVE] > 0.5).view(len(states), -1)
        features: Tensor = self.fusion(torch.cat([stream_view(states, streams["clock"]), mechs], 1))
        return features


def stream_view(vectors: Tensor, stream: Stream) -> Tensor:
    """View of a stream in vectors (R, D), in the stream's shape: (R, *shape)."""
    return vectors[:, stream.part].view(len(vectors), *stream.shape)


def select_rows(tensor: Tensor, rows: Tensor | None) -> Tensor:
    """Select rows by index (n,) int64; None selects all. A view, not a copy, if they are the first n rows in order."""
    if rows is None:
        return tensor
    first = torch.arange(len(rows), device=rows.device)
    return tensor[: len(rows)] if torch.equal(rows, first) else tensor.index_select(0, rows)


def table_and_mask(observations: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """A table's rows (R, rows, F) in observations (R, OBSERVATION_DIM), and the mask of filled rows (R, rows) bool."""
    return stream_view(observations, STREAMS[name]), stream_view(observations, STREAMS[f"{name}_mask"]) > 0.5


def fusion(width: int, features_dim: int) -> nn.Sequential:
    """Linear layer, LayerNorm and ReLU that combine the encoded streams into features."""
    return nn.Sequential(nn.Linear(width, features_dim), nn.LayerNorm(features_dim), nn.ReLU())
