"""Simulated games of members with known strengths, also cyclic ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from echelon_train.league.ratings.payoffs import Payoffs, payoffs

Array = NDArray[np.float64]

POINTS = 400 / np.log(10)
"""Points per logit."""


def ahead(strengths: Array) -> Array:
    """Logits (P, P) of row against column, of strengths (P,) in points."""
    return (strengths[:, None] - strengths) / POINTS


def circle(members: int, by: float) -> Array:
    """Logits (P, P): each member beats the next and loses to the next but one. P is a multiple of 3."""
    steps = (np.arange(members) - np.arange(members)[:, None]) % 3
    return by * np.array([0.0, 1.0, -1.0])[steps]


def draw_scores(rng: np.random.Generator, win: float, games: int, *, alike: float = 0.3, drawn: float = 0.2) -> Array:
    """Scores (games,) with the expected value `win`.

    Both battles end alike in a share `alike` of the games, and are independent in the others. `drawn` is the number of
    draws, as a share of the largest possible number.
    """
    half = drawn * min(win, 1 - win)
    chance = rng.random((games, 2))
    battles = np.where(chance < win - half, 1.0, np.where(chance < win + half, 0.5, 0.0))
    same = rng.random(games) < alike
    battles[same, 1] = battles[same, 0]
    return battles.mean(axis=1)


def names(members: int) -> list[str]:
    return [f"member-{number}" for number in range(members)]


def draw_league(rng: np.random.Generator, logits: Array, games: int, *, neighbours: int = 99, **each: float) -> Payoffs:
    """The games of all pairs that are at most `neighbours` places apart."""
    members = names(len(logits))
    scores = {}
    for i, first in enumerate(members):
        for j in range(i + 1, min(len(members), i + neighbours + 1)):
            scores[first, members[j]] = draw_scores(rng, float(expit(logits[i, j])), games, **each)
    return payoffs(members, scores)
