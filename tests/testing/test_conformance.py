import pytest

from echelon_env.testing import CHECKS, ConformanceError
from testing import test_parallel, test_vector


def test_every_check_has_injected_faults():
    injected = {check for check, *_ in [*test_parallel.FAULTS, *test_vector.FAULTS]}
    assert injected == set(CHECKS)


def test_within_prefixes_the_place_of_an_error():
    error = ConformanceError("rewards", "agent 'a'", "a number", "None").within("step 3")
    assert str(error) == (
        "rewards: step 3, agent 'a': expected a number, got None (every reward is a finite real number)"
    )
    with pytest.raises(KeyError):
        ConformanceError("no such check", "", "", "")
