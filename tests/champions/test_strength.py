"""The champions' strength has not moved: wins on fixed maps lie in the interval that their cards imply.

If a change of rules, maps or observations makes one of these tests fail, train the champion again, or measure its
present strength for its card in docs/champions.md.
"""

import pytest
from scipy import stats

from echelon_env import make_config
from echelon_env.evaluate import baseline, evaluation_seed, named_player, play_match

RATES = {
    ("duel", "expert"): 0.995,
    ("duel", "veteran"): 0.975,
    ("skirmish", "expert"): 0.87,
    ("skirmish", "veteran"): 0.935,
    ("battle", "expert"): 0.81,
    ("battle", "veteran"): 0.955,
}
"""Win rates of the cards, in 200 battles or more."""

CONFIDENCE = 0.99


def check(scenario: str, opponent: str, maps: int, champion: str = "champion") -> None:
    seeds = [evaluation_seed(27, number) for number in range(maps)]
    players = named_player(champion), baseline(opponent)
    match = play_match(*players, make_config(scenario), seeds, scenario=scenario)
    low, high = stats.binom.interval(CONFIDENCE, 2 * maps, RATES[scenario, opponent])
    print(f"{match.wins} of {2 * maps} battles of {scenario} won against {opponent}, expected {low:.0f} to {high:.0f}")
    assert low <= match.wins <= high


@pytest.mark.parametrize(("scenario", "opponent", "maps"), [("duel", "veteran", 12), ("skirmish", "expert", 8)])
def test_the_strength_in_a_few_battles(scenario, opponent, maps):
    check(scenario, opponent, maps)


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "maps"), [("duel", 30), ("skirmish", 20), ("battle", 12)])
def test_the_strength_against_the_expert(scenario, maps):
    check(scenario, "expert", maps)


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "opponent"), RATES)
def test_the_strength_in_many_battles(scenario, opponent):
    check(scenario, opponent, 100)


def test_a_weaker_champion_fails():
    with pytest.raises(AssertionError):
        check("duel", "veteran", 12, "champion@reaction_delay=1")
