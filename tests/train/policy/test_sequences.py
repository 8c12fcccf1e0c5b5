import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from echelon_train.policy.sequences import SequencePolicy, Sequences


@st.composite
def random_sequences(draw):
    """Random `Sequences`, and the sample indices of each sequence by step; samples are step-major or in any order."""
    longest, number = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    starts = torch.tensor(draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=number, max_size=number)))
    if draw(st.booleans()):
        samples = [[step * number + each for step in range(longest)] for each in range(number)]
        return Sequences(longest, number, starts, None), samples
    lengths = draw(st.lists(st.integers(1, longest), min_size=number, max_size=number))
    order = iter(draw(st.permutations(range(sum(lengths)))))
    samples = [[next(order) for _ in range(length)] for length in lengths]
    place = torch.zeros(sum(lengths), dtype=torch.int64)
    for each, steps in enumerate(samples):
        for step, sample in enumerate(steps):
            place[sample] = step * number + each
    return Sequences(longest, number, starts, place), samples


def steps_of(sequences, count):
    """The samples of each sequence by step, derived from `place`."""
    place = range(count) if sequences.place is None else sequences.place.tolist()
    found = [{} for _ in range(sequences.number)]
    for sample, at in enumerate(place):
        step, each = divmod(at, sequences.number)
        assert step not in found[each]
        found[each][step] = sample
    return found


@settings(max_examples=150)
@given(given_sequences=random_sequences(), data=st.data())
def test_selecting_samples_keeps_their_sequences_only(given_sequences, data):
    sequences, samples = given_sequences
    count = sum(map(len, samples))
    marked = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    taken = torch.tensor(marked).nonzero().flatten()
    kept, numbers = sequences.select(taken)
    expected = [each for each, steps in enumerate(samples) if any(marked[sample] for sample in steps)]
    assert numbers.tolist() == expected
    assert kept.starts.tolist() == [float(sequences.starts[each]) for each in expected]
    assert (kept.length, kept.number) == (sequences.length, len(expected))
    if expected:
        renamed = [{step: taken[new].item() for step, new in steps.items()} for steps in steps_of(kept, len(taken))]
        left = [{step: sample for step, sample in enumerate(samples[each]) if marked[sample]} for each in expected]
        assert renamed == left
    # selecting all samples again changes nothing
    again, all_numbers = kept.select(torch.arange(len(taken)))
    assert all_numbers.tolist() == list(range(len(expected)))
    assert torch.equal(again.place, kept.place)


@settings(max_examples=40)
@given(given_sequences=random_sequences(), seed=st.integers(0, 2**32 - 1))
def test_one_call_equals_a_loop_over_time(given_sequences, seed):
    sequences, samples = given_sequences
    generator = torch.Generator().manual_seed(seed)
    lstm = nn.LSTM(3, 4)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        features = torch.randn(sum(map(len, samples)), 3, generator=generator)
        states = [torch.randn(1, sequences.number, 4, generator=generator) for _ in range(2)]
        output, after = SequencePolicy._process_sequence(features, tuple(states), sequences, lstm)
        for each, steps in enumerate(samples):
            state = tuple(part[:, [each]] * (1.0 - sequences.starts[each]) for part in states)
            for sample in steps:
                expected, state = lstm(features[sample].view(1, 1, 3), state)
                torch.testing.assert_close(output[sample], expected[0, 0])
            if len(steps) == sequences.length:
                torch.testing.assert_close(after[1][:, [each]], state[1])
