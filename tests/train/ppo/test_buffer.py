import numpy as np
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_train.ppo.buffer import ChunkBuffer

CPU = torch.device("cpu")
VECTOR = spaces.Box(-1.0, 1.0, (2,), np.float32)


def numbered_buffer(steps=8, rows=3, chunk=4, *, starts=(), space=VECTOR, action=((), torch.int64)):
    """A buffer whose entries are step * 100 + row, and these numbers (T, N)."""
    states = (torch.zeros(2, rows, 1), torch.zeros(2, rows, 1))
    buffer = ChunkBuffer(steps, rows, chunk, space, *action, states, 2, True, CPU)
    number = torch.arange(steps)[:, None] * 100 + torch.arange(rows)
    parts = buffer.observations.values() if isinstance(buffer.observations, dict) else [buffer.observations]
    for tensor in (*parts, buffer.actions, buffer.labels, buffer.values, buffer.log_probs, buffer.returns):
        tensor.copy_(number.view(steps, rows, *[1] * (tensor.ndim - 2)).expand_as(tensor))
    buffer.actor_mask[:] = buffer.has_labels = True
    for step, row in starts:
        buffer.episode_starts[step, row] = True
    for step in range(steps):
        state = (step * 100 + torch.arange(rows)).float().view(1, rows, 1).expand(2, rows, 1)
        buffer.store_states(step, (state, state + 0.5))
    return buffer, number


def naive_sequences(starts, chunks, rows, length):
    """The sequences of chunks by a loop: (step, row) pairs, whether an episode starts, and the chunk."""
    result = []
    for chunk in chunks:
        first, row = chunk // rows * length, chunk % rows
        for step in range(first, first + length):
            if step == first or starts[step, row]:
                result.append(([], bool(starts[step, row]), chunk))
            result[-1][0].append((step, row))
    return result


@settings(max_examples=80)
@given(data=st.data())
def test_batches_equal_those_of_a_naive_implementation(data):
    rows, length = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    steps = length * data.draw(st.integers(1, 3))
    share = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    where = [tuple(index) for index in np.argwhere(rng.random((steps, rows)) < share)]
    buffer, number = numbered_buffer(steps, rows, length, starts=where)
    buffer.actor_mask[:] = torch.from_numpy(rng.random((steps, rows)) < data.draw(st.sampled_from([0.0, 0.5, 1.0])))
    chunks = torch.from_numpy(rng.permutation(buffer.num_chunks)[: rng.integers(1, buffer.num_chunks + 1)])
    batch = buffer.batch(chunks, number.float() * 2)
    sequences = batch.sequences
    places = torch.arange(len(batch.actions)) if sequences.place is None else sequences.place
    grid = torch.full((sequences.length, sequences.number), -1)
    grid[places // sequences.number, places % sequences.number] = batch.actions
    found = sorted(
        (
            [number for number in grid[:, each].tolist() if number >= 0],
            bool(sequences.starts[each]),
            batch.states[0][:, each].flatten().tolist(),
            batch.states[1][:, each].flatten().tolist(),
        )
        for each in range(sequences.number)
    )
    expected = sorted(
        (
            [step * 100 + row for step, row in piece],
            begins,
            [chunk // rows * length * 100 + chunk % rows] * 2,
            [chunk // rows * length * 100 + chunk % rows + 0.5] * 2,
        )
        for piece, begins, chunk in naive_sequences(buffer.episode_starts, chunks.tolist(), rows, length)
    )
    assert found == expected
    # padding comes at the end of a sequence
    assert all((grid[1:][grid[:-1] < 0] < 0).tolist())
    fields = (*batch.old_log_probs.T, batch.returns, batch.advantages / 2, batch.observations[:, 1])
    for field in fields:
        torch.testing.assert_close(field, batch.actions.float())
    assert torch.equal(batch.labels, batch.actions)
    assert len(set(batch.actions.tolist())) == len(batch.actions) == len(chunks) * length
    actor_mask = buffer.actor_mask[batch.actions // 100, batch.actions % 100]
    assert torch.equal(batch.actor_mask, actor_mask)
    assert torch.equal(actor_mask.sort(descending=True).values, actor_mask), "samples of active rows come first"
