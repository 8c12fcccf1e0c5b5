import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize
from scipy.special import expit, logit

from echelon_train.league.errors import LeagueError
from echelon_train.league.ratings import nash_averaging
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.nash_averaging import TOLERANCE, maximum_entropy_equilibrium, nash_average
from echelon_train.league.ratings.payoffs import payoffs
from train.league.drawn import POINTS, circle

EVEN = {name: Rating() for name in "abcd"}


@pytest.mark.parametrize(("rocks", "papers", "scissors"), [(2, 1, 1), (3, 1, 2), (5, 2, 1)])
def test_copies_of_a_member_share_its_weight(rocks, papers, scissors):
    copies = np.repeat(np.arange(3), (rocks, papers, scissors))
    weights = maximum_entropy_equilibrium(circle(3, 1.5)[np.ix_(copies, copies)])
    np.testing.assert_allclose(weights, 1 / 3 / np.array((rocks, papers, scissors))[copies], atol=1e-9)


def verify(payoff):
    """The mixture, verified without the module's own means: no member beats it, and its entropy is the maximum.

    The entropy is at the maximum if the gradient has no part along the feasible directions: the linear program over
    the equilibria finds none that leads up.
    """
    weights = maximum_entropy_equilibrium(payoff)
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1, abs=1e-12)
    assert (payoff @ weights).max() < 1e-9 * max(1.0, np.abs(payoff).max())
    gradient = -np.log(np.maximum(weights, 1e-300)) * (weights > 0)
    size = len(payoff)
    best = optimize.linprog(-gradient, payoff, np.zeros(size), np.ones((1, size)), [1.0])
    assert -best.fun - gradient @ weights < 1e-5
    return weights


@settings(max_examples=60)
@given(
    st.integers(1, 9).flatmap(lambda size: arrays(np.float64, (size, size), elements=st.integers(-4, 4).map(float))),
    st.floats(0.01, 3.0),
)
def test_no_member_beats_the_mixture(numbers, scale):
    payoff = scale * (np.triu(numbers, 1) - np.triu(numbers, 1).T)
    weights = verify(payoff)
    order = np.random.default_rng(0).permutation(len(payoff))
    np.testing.assert_allclose(maximum_entropy_equilibrium(payoff[np.ix_(order, order)]), weights[order], atol=1e-5)


@pytest.mark.parametrize(
    ("upper", "scale"),
    [
        (([0, -4, 2, 0, 0, 0, 3], [0, 0, 1, 0, 1, 0, -4], [0, 0, 0, 0, 0, 1, 3]), 1.25),
        (([0, 3, 3, -4, 1], [0, 0, 2, -1, -4], [0, 0, 0, 0, -3], [0, 0, 0, 0, 2]), 2.425),
    ],
)
def test_games_on_which_a_descent_of_the_dual_stops_early(upper, scale):
    """L-BFGS-B returned mixtures of these that a member beats, the first by 0.03 logits, others by 1e-8."""
    size = len(upper[0])
    above = np.zeros((size, size))
    above[: len(upper)] = upper
    verify(scale * (above - above.T))


@settings(max_examples=40)
@given(
    arrays(np.float64, (8, 8), elements=st.integers(-2, 2).map(float)),
    st.integers(1, 8),
    st.integers(-16, -3),
    st.integers(0, 2**32 - 1),
)
def test_members_that_hardly_differ_have_an_equilibrium_as_well(numbers, kinds, exponent, seed):
    rng = np.random.default_rng(seed)
    above = np.triu(numbers, 1)
    copies = rng.integers(0, kinds, 12)
    noise = np.triu(10.0**exponent * rng.normal(size=(12, 12)), 1)
    payoff = (above - above.T)[np.ix_(copies, copies)] + noise - noise.T
    weights = maximum_entropy_equilibrium(payoff)
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1)
    assert (payoff @ weights).max() <= TOLERANCE * np.abs(payoff).max()


def test_no_mixture_is_returned_that_could_not_be_verified(monkeypatch):
    monkeypatch.setattr(nash_averaging, "_candidates", lambda payoff: iter([np.array([0.5, 0.5])]))
    with pytest.raises(LeagueError, match="no equilibrium"):
        maximum_entropy_equilibrium(np.array([[0.0, 1.0], [-1.0, 0.0]]))


@pytest.mark.parametrize(
    "payoff", [np.ones((2, 2)), np.array([[0.0, np.inf], [-np.inf, 0.0]]), np.zeros(3), np.zeros((0, 0))]
)
def test_matrices_of_other_games_are_refused(payoff):
    with pytest.raises(ValueError, match="antisymmetric"):
        maximum_entropy_equilibrium(payoff)


def test_pairs_without_games_are_filled_and_marked():
    ratings = EVEN | {"c": Rating(1900.0, 0.0), "a": Rating(1500.0, 0.0)}
    average = nash_average(payoffs(["a", "b", "c"], {("a", "b"): [0.75] * 9, ("b", "c"): [0.0] * 4}), ratings)
    assert np.argwhere(average.filled).tolist() == [[0, 2], [2, 0]]
    assert average.weights.tolist() == [0, 0, 1]
    assert average.advantage[0] == pytest.approx(-400, abs=0.1)  # as rated
    share = expit((1500 - 1900) / POINTS / np.sqrt(1 + 3 * (350 / POINTS / np.pi) ** 2))
    assert average.advantage[1] == pytest.approx(POINTS * logit(share / 5), abs=0.1)  # four games lost, one as rated
