"""The champions' strength has not moved: battles on the suite's maps end as in their published rows.

By the rules of the rows the outcomes are identical. By other rules they must not be worse, map by map, than chance
explains: else train the champion again, or measure its present strength for docs/results/champions.md. Only the slow
tests, of 100 maps, notice a small loss.
"""

import math

import numpy as np
import pytest
from benchmarks.baselines import results
from benchmarks.baselines.judge import LETTERS, conditions
from benchmarks.baselines.plan import SUITE, TABLE
from scipy import stats

from echelon_env.config.opponent import CHAMPION
from echelon_env.evaluate import baseline, load_suite, play_match

VALUES = {letter: value for value, letter in LETTERS.items()}
LEAST_P = 0.02
"""Of the hypothesis that the outcomes are no worse than in the row."""

ROWS = {
    row["scenario"]: row for row in results.read(results.FILE) if (row["method"], row["suite"]) == (CHAMPION, SUITE)
}


def outcomes(scenario: str, opponent: str, maps: int) -> str:
    suite = load_suite(SUITE)
    players = baseline(CHAMPION), baseline(opponent)
    match = play_match(*players, suite.config(scenario), suite.scenario(scenario).seeds[:maps], scenario=scenario)
    return "".join(LETTERS[battle.outcome] for battle in match.battles)


def check(scenario: str, opponent: str, maps: int) -> None:
    row = ROWS[scenario]
    before, now = row["outcomes"][scenario][opponent][: 2 * maps], outcomes(scenario, opponent, maps)
    print(f"{scenario} v {opponent}: {now.count('W')} of {2 * maps} battles won, {before.count('W')} in the row")
    if all(row[name] == value for name, value in conditions(SUITE).items()):
        assert now == before
    by_map = [np.array([VALUES[each] for each in played]).reshape(-1, 2).mean(axis=1) for played in (now, before)]
    found = stats.permutation_test(
        by_map, lambda a, b: np.mean(a - b), permutation_type="samples", alternative="less", n_resamples=9_999, rng=1
    )
    change = by_map[0] - by_map[1]
    error = 1.96 * change.std(ddof=1) / math.sqrt(maps)
    moved = f"mean outcome {found.statistic:+.2f} +- {error:.2f} (95 %) against the row"
    print(moved)
    assert found.pvalue > LEAST_P, moved


@pytest.mark.parametrize(("scenario", "maps"), [("duel", 12), ("skirmish", 4)])
def test_the_strength_in_a_few_battles(scenario, maps):
    check(scenario, "expert", maps)


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "maps"), [("duel", 20), ("skirmish", 12), ("battle", 6)])
def test_the_strength_against_the_veteran(scenario, maps):
    check(scenario, "veteran", maps)


@pytest.mark.slow
@pytest.mark.parametrize("opponent", load_suite(SUITE).opponents)
@pytest.mark.parametrize("scenario", TABLE)
def test_the_strength_in_all_battles(scenario, opponent):
    check(scenario, opponent, 100)
