import itertools

import numpy as np

from echelon_env import observations as obs
from echelon_env.actions import ACTION_DIM, Action, describe_action


def test_streams_follow_one_another_and_fill_the_flat_vector():
    streams = list(obs.STREAMS.values())
    assert streams[0].start == 0
    for stream, following in itertools.pairwise(streams):
        assert stream.stop == following.start
    assert streams[-1].stop == obs.OBSERVATION_DIM


def test_names_and_bounds_cover_every_entry():
    names = obs.feature_names()
    low, high = obs.observation_bounds()
    assert len(set(names)) == len(names) == obs.OBSERVATION_DIM == len(low) == len(high)
    assert low.dtype == high.dtype == np.float32
    assert (low < high).all()
    at = obs.STREAMS["contacts"].start + 3 * len(obs.Contact) + obs.Contact.DISTANCE
    assert names[at] == "contacts.3.distance"


def test_descriptions_name_everything():
    table = obs.describe_observation()
    for stream in obs.STREAMS.values():
        for feature in stream.features:
            assert f"| {feature.name.lower()} |" in table
    assert len(Action) == ACTION_DIM
    for entry in Action:
        assert f"| {entry.value} | {entry.name.lower()} |" in describe_action()
