"""Neither colour and neither corner has an advantage: equal policies on mirrored maps win as often as they lose."""

import math

import numpy as np
import pytest

from echelon_env import BattleEngine, opponents
from echelon_env.engine.state import BLUE, DRAW, REASONS
from support.playing import scripted_actions

BATCH = 100


def play(battles):
    """Winner and holder of the first spawn area of each battle between experts, and counts of the reasons."""
    engine = BattleEngine("skirmish", num_battles=BATCH, terrain={"mirrored": True})
    players = tuple(opponents.make("expert", 0, engine.config) for _ in range(2))
    winners, first_teams, reasons = [], [], []
    for first in range(0, battles, BATCH):
        engine.reset(range(first, first + BATCH))
        for player in players:
            player.reset(np.ones(BATCH * 5, bool))
        while not engine.battle_over.all():
            engine.step(scripted_actions(engine, players))
        winners.append(engine.winner)
        first_teams.append(engine.state.battles["first_team"].copy())
        reasons.append(engine.reason)
    ends = np.bincount(np.concatenate(reasons), minlength=len(REASONS))
    return np.concatenate(winners), np.concatenate(first_teams), dict(zip(REASONS, ends.tolist(), strict=True))


def score(winners, team):
    """Mean score of a team (win 1, draw 1/2) and its standard error."""
    scores = np.where(winners == DRAW, 0.5, winners == team)
    return scores.mean(), scores.std(ddof=1) / math.sqrt(len(scores))


def assert_fair(battles):
    winners, first_teams, ends = play(battles)
    blue, blue_error = score(winners, BLUE)
    first, first_error = score(winners, first_teams)
    decided = (winners != DRAW).mean()
    report = (
        f"{battles} battles: blue scores {blue:.4f} +- {blue_error:.4f}, the first spawn area {first:.4f} "
        f"+- {first_error:.4f}; {decided:.1%} decided; ends: {ends}"
    )
    print(report)
    assert abs(blue - 0.5) <= 3 * blue_error, report
    assert abs(first - 0.5) <= 3 * first_error, report
    assert decided >= 0.8, report


@pytest.mark.long
def test_a_few_battles_are_fair():
    assert_fair(200)


@pytest.mark.slow
def test_two_thousand_battles_are_fair():
    assert_fair(2000)
