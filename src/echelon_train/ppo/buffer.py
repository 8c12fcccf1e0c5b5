"""The rollout buffer, which yields minibatches of chunks for the LSTM."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from gymnasium import spaces
from torch import Tensor

from echelon_env.storage.atomic import write_bytes
from echelon_train.policy.sequences import STATE, Observations, Sequences
from echelon_train.ppo import observations


class Batch(NamedTuple):
    """S samples of a minibatch.

    Samples of active rows come first, so that they are a slice and need no copy. Of a dense buffer they are in the
    order of their steps.
    """

    observations: Observations  # (S, ...); with shared states see `TEAM`
    actions: Tensor  # (S, ...) raw actions
    old_log_probs: Tensor  # (S, blocks)
    advantages: Tensor  # (S,) normalised
    returns: Tensor  # (S,)
    actor_mask: Tensor  # (S,) bool: samples of the policy's loss; all are of the critic's
    states: tuple[Tensor, ...]  # (layers, n, units) each
    sequences: Sequences
    labels: Tensor | None  # (S, ...) a teacher's actions, if it labelled the rollout


class ChunkBuffer:
    """T steps of N rows as tensors (T, N, ...), allocated once; recurrent states only at the starts of chunks.

    Global states that rows share are kept once for them: (T, N / state_rows, ...).

    Parameters
    ----------
    num_steps
        T.
    num_rows
        N.
    chunk
        Steps L of a chunk, a divisor of T.
    observation_space
        Observation space of a row; a Dict must not be nested.
    action_shape, action_dtype
        Shape and dtype of a row's raw action.
    states
        The recurrent state's tensors (layers, N, units), for their shapes and dtypes.
    blocks
        Number of blocks of an action, which have separate log-probabilities.
    labelled
        Whether the buffer also holds a teacher's actions.
    device
        Device of the tensors.
    dense
        Whether minibatches are for a dense policy, see `SequencePolicy.dense`: their shapes depend only on the number
        of chunks.
    state_rows
        Rows in succession that have one global state, a divisor of N; 1: every row has its own, or there are none.
    """

    def __init__(
        self,
        num_steps: int,
        num_rows: int,
        chunk: int,
        observation_space: spaces.Space,  # type: ignore[type-arg]
        action_shape: tuple[int, ...],
        action_dtype: torch.dtype,
        states: tuple[Tensor, ...],
        blocks: int,
        labelled: bool,
        device: torch.device,
        dense: bool = False,
        state_rows: int = 1,
    ) -> None:
        if num_rows % state_rows:
            raise ValueError(f"state_rows: expected a divisor of {num_rows} rows, got {state_rows}")
        self.dense, self.state_rows = dense, state_rows
        self.teams = None if state_rows == 1 else torch.arange(num_rows, device=device) // state_rows
        """(N,) int64: the number of each row's state; None if no rows share one."""
        self.num_steps, self.num_rows, self.chunk = num_steps, num_rows, chunk
        self.device = device
        shape = (num_steps, num_rows)

        def allocate(*tail: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(*shape, *tail, dtype=dtype, device=device)

        self.observations = observations.allocate(observation_space, *shape, device, state_rows)
        self.actions = allocate(*action_shape, dtype=action_dtype)
        self.labels = allocate(*action_shape, dtype=action_dtype) if labelled else None
        self.has_labels = False
        """Whether `labels` are those of the present rollout."""
        self.log_probs = allocate(blocks)
        self.rewards, self.values = allocate(), allocate()
        self.advantages, self.returns, self.bootstraps = allocate(), allocate(), allocate()
        self.episode_starts, self.dones, self.actor_mask = (allocate(dtype=torch.bool) for _ in range(3))
        self.states = tuple(
            torch.zeros(num_steps // chunk, *state.shape, dtype=state.dtype, device=device) for state in states
        )

    def store_states(self, step: int, states: tuple[Tensor, ...]) -> None:
        """Store the recurrent states before a step, if a chunk starts there."""
        if step % self.chunk == 0:
            for kept, state in zip(self.states, states, strict=True):
                kept[step // self.chunk].copy_(state)

    @property
    def num_chunks(self) -> int:
        """Number of chunks of all rows; chunk `c * N + row` starts at step `c * L`."""
        return self.num_steps // self.chunk * self.num_rows

    def sample_counts(self, chunks: Tensor) -> Tensor:
        """(2,) float32: numbers of active samples and of all samples of the chunks."""
        active = self.actor_mask.view(-1, self.chunk, self.num_rows).sum(1).flatten().index_select(0, chunks).sum()
        return torch.stack([active, torch.full_like(active, len(chunks) * self.chunk)]).float()

    def orders(self, epochs: int) -> Tensor:
        """All chunks in a random order for each of some epochs, (epochs, chunks) int64 on the device."""
        orders = torch.stack([torch.randperm(self.num_chunks) for _ in range(epochs)])
        if self.device.type == "cuda":  # otherwise the copy would wait for the GPU
            orders = orders.pin_memory()
        return orders.to(self.device, non_blocking=True)

    def batch(self, chunks: Tensor, advantages: Tensor) -> Batch:
        """The samples of a minibatch.

        Parameters
        ----------
        chunks
            (n,) int64: indices of its chunks, on the device.
        advantages
            (T, N), normalised.
        """
        chunk_index, row_index = chunks // self.num_rows, chunks % self.num_rows
        steps = torch.arange(self.chunk, device=self.device)[:, None] + chunk_index * self.chunk
        index = (steps * self.num_rows + row_index).flatten()

        def take(tensor: Tensor) -> Tensor:
            return tensor.flatten(0, 1).index_select(0, index)

        episode_starts = take(self.episode_starts).view(self.chunk, -1)
        states = tuple(state[chunk_index, :, row_index].transpose(0, 1) for state in self.states)
        if self.dense:
            sequences = Sequences(self.chunk, len(chunks), episode_starts.float(), None)
        else:
            sequences, sources = self._cut(episode_starts)
            states = tuple(state[:, sources] for state in states)
            order = take(self.actor_mask).argsort(descending=True, stable=True)
            sequences = sequences._replace(place=order if sequences.place is None else sequences.place[order])
            index = index[order]
        return Batch(
            self._take_observations(index),
            take(self.actions),
            take(self.log_probs),
            take(advantages),
            take(self.returns),
            take(self.actor_mask),
            tuple(state.contiguous() for state in states),
            sequences,
            take(self.labels) if self.labels is not None and self.has_labels else None,
        )

    def _take_observations(self, index: Tensor) -> Observations:
        """The observations of samples, given as (S,) int64 in T * N."""
        flat = observations.flat(self.observations)
        if self.teams is None:
            return observations.tree_map(lambda part: part.index_select(0, index), flat)
        assert isinstance(flat, dict)
        used, team = index // self.state_rows, None
        if not self.dense:  # their number depends on the data
            used, team = torch.unique(used, return_inverse=True)
        taken = {name: part.index_select(0, used if name == STATE else index) for name, part in flat.items()}
        return observations.with_teams(taken, team)

    def _cut(self, episode_starts: Tensor) -> tuple[Sequences, Tensor]:
        """Cut chunks into sequences at episode starts, given as (L, n) bool.

        A piece after a cut becomes an additional sequence after the first n; its initial state is masked. Returns the
        sequences, and (n',) int64: the chunk whose stored state each of them starts from.
        """
        length, count = episode_starts.shape
        inside = episode_starts.clone()
        inside[0] = False
        if not bool(inside.any()):
            sources = torch.arange(count, device=self.device)
            return Sequences(length, count, episode_starts[0].float(), None), sources
        pieces = inside.t().flatten().cumsum(0).view(count, length).t()  # cumulative number of cuts, chunk by chunk
        before = torch.cat([pieces.new_zeros(1), pieces[-1, :-1]])  # cuts in earlier chunks
        cut_step, cut_chunk = inside.t().nonzero(as_tuple=True)[::-1]
        number = torch.where(pieces > before, count + pieces - 1, torch.arange(count, device=self.device))
        first = torch.cat([torch.zeros(count, dtype=torch.int64, device=self.device), cut_step])
        total = len(first)
        step = torch.arange(length, device=self.device)[:, None] - first[number]
        starts = torch.cat([episode_starts[0].float(), torch.ones(len(cut_step), device=self.device)])
        sources = torch.cat([torch.arange(count, device=self.device), cut_chunk])
        return Sequences(length, total, starts, (step * total + number).flatten()), sources


def write_batch(batch: Batch, folder: str | None) -> Path:
    """Write a minibatch to a safetensors file in `folder`, or in a temporary folder. Returns the file's path.

    Its tensors are the fields of `Batch` by name, such as ``observations.state``.
    """
    observations = batch.observations if isinstance(batch.observations, dict) else {"observation": batch.observations}
    tensors = {f"observations.{name}": part for name, part in observations.items()}
    others = batch._replace(observations={})._asdict()
    tensors |= {name: part for name, part in others.items() if isinstance(part, Tensor)}
    tensors |= {f"states.{number}": state for number, state in enumerate(batch.states)}
    file = Path(folder or tempfile.mkdtemp()) / "nonfinite_minibatch.safetensors"
    write_bytes(file, safetensors.torch.save({name: part.cpu().contiguous() for name, part in tensors.items()}))
    return file
