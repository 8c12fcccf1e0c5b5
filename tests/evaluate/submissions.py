"""Synthetic submissions, and a player with a simple policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from echelon_env.evaluate import Match, Player, Suite
from echelon_env.evaluate.matches import Identity
from echelon_env.evaluate.submission import Method, Submission
from echelon_env.layout.actions import ACTION_DIM, Action
from evaluate.made import made_match

STAMP = {"package": "1.2.3", "engine_hash": "e" * 64, "opponents_hash": "0" * 64}


class Charge:
    """Walks forward and fires all the time."""

    def reset(self, mask: np.ndarray) -> None:
        pass

    def act(self, observations: np.ndarray) -> np.ndarray:
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        actions[:, [Action.THROTTLE, Action.PRIMARY]] = 1.0
        return actions


def made_player(policy: type, name: str = "charge") -> Player:
    return Player(name, "scripted", lambda config, noise: policy())


def made_submission(
    suite: Suite,
    outcomes: Mapping[str, Sequence[Sequence[tuple[int, int]]]],
    *,
    method: Method | None = None,
    identity: Identity | None = None,
    action_mode: str = "sampled",
    stamp: Mapping[str, str] = STAMP,
) -> Submission:
    """A submission with outcomes that were never played: scenario -> opponent -> map -> outcomes of both sides.

    The scores are random: those of other outcomes are different.
    """
    method = method or Method("made")
    rng = np.random.default_rng([*repr(outcomes).encode()])
    matches: list[Match] = []
    for scenario, against in outcomes.items():
        for opponent, pairs in zip(suite.opponents, against, strict=True):
            match = made_match(method.name, opponent, pairs, scenario=scenario)
            seeds = suite.scenario(scenario).seeds
            battles = tuple(
                replace(battle, seed=seeds[battle.number // 2], scores=(30 + rng.random(), 10.0))
                for battle in match.battles
            )
            matches.append(replace(match, battles=battles))
    return Submission(method, action_mode, identity or {}, suite, stamp, tuple(matches))
