import itertools

import numpy as np

from echelon_env.layout import observations as obs


def test_streams_follow_one_another_and_fill_the_flat_vector():
    streams = list(obs.STREAMS.values())
    assert streams[0].start == 0
    for stream, following in itertools.pairwise(streams):
        assert stream.stop == following.start
    assert streams[-1].stop == obs.OBSERVATION_DIM


def test_shapes_hold_the_streams_entries():
    for stream in obs.STREAMS.values():
        assert np.prod(stream.shape) == stream.rows * stream.row_width == stream.stop - stream.start
        assert obs.observation_bounds()[0][stream.part].reshape(stream.shape).shape == stream.shape


def test_tables_with_a_mask_have_a_row_for_each_entry():
    for name, stream in obs.STREAMS.items():
        if name.endswith("_mask"):
            assert stream.shape == (obs.STREAMS[name.removesuffix("_mask")].rows,)
            assert obs.STREAMS[name.removesuffix("_mask")].stop == stream.start


def test_names_and_bounds_cover_every_entry():
    names = obs.feature_names()
    low, high = obs.observation_bounds()
    assert len(set(names)) == len(names) == obs.OBSERVATION_DIM == len(low) == len(high)
    assert low.dtype == high.dtype == np.float32
    assert (low < high).all()
    at = obs.STREAMS["contacts"].start + 3 * len(obs.Contact) + obs.Contact.DISTANCE
    assert names[at] == "contacts.3.distance"
