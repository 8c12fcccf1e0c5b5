import numpy as np
import pytest

from echelon_env import ConfigError, make_config
from echelon_env.evaluate import BattleNoise, Player, baseline, evaluation_seed, play_match
from echelon_env.evaluate.estimates import difference_interval, map_scores, score_interval
from echelon_env.evaluate.partners import partner_rows
from echelon_env.evaluate.teams import team_of, teams_beside
from echelon_env.layout.observations import OBSERVATION_DIM
from evaluate.made import made_match

TRIO = make_config("trio", max_steps=60)
SEEDS = [evaluation_seed(3, number) for number in range(2)]


class Recorder:
    """A policy whose actions are a number, and that keeps what it gets."""

    def __init__(self, value, calls):
        self.value, self.calls = value, calls

    def reset(self, mask):
        self.calls.append(("reset", mask.tolist()))

    def act(self, observations):
        self.calls.append(("act", observations[:, 0].tolist()))
        return np.full((len(observations), 27), self.value, np.float32)

    def close(self):
        self.calls.append(("close",))


def recorder(name, value, calls, noises):
    def make(config, noise):
        noises.append(noise)
        return Recorder(value, calls)

    return Player(name, "scripted", make)


def test_members_drive_the_mechs_of_each_battle_in_turn():
    calls, noises = ([], []), []
    team = team_of(*(recorder(name, value, calls[value], noises) for value, name in enumerate("ab")))
    policy = team.make(TRIO, BattleNoise([8, 9], (1, 0), 3))
    assert [(noise.team_size, noise.seeds, noise.stream) for noise in noises] == [
        (2, (8, 9), (1, 0, 0)),
        (1, (8, 9), (1, 0, 1)),
    ]
    policy.reset(np.array([True, False, False, False, True, True]))
    observations = np.zeros((6, OBSERVATION_DIM), np.float32)
    observations[:, 0] = np.arange(6)
    assert policy.act(observations)[:, 5].tolist() == [0, 1, 0, 0, 1, 0]
    policy.close()
    assert calls[0] == [("reset", [True, False, False, True]), ("act", [0, 2, 3, 5]), ("close",)]
    assert calls[1] == [("reset", [False, True]), ("act", [1, 4]), ("close",)]


def test_a_team_of_copies_plays_as_the_player():
    expert = baseline("expert")
    alone, team = (
        play_match(player, baseline("novice"), TRIO, SEEDS, scenario="trio")
        for player in (expert, team_of(expert, expert, expert))
    )
    assert alone.battles == team.battles


def test_a_team_says_what_is_known_of_its_members():
    trained = Player("x", "sampled", lambda config, noise: None, TRIO, frozenset("ab"), {"steps": 3})
    other = Player("y", "deterministic", lambda config, noise: None, None, frozenset("bc"), {"steps": 4})
    team = team_of(baseline("novice"), trained, other, trained)
    assert (team.name, team.action_mode) == ("novice+x+y+x", "scripted+sampled+deterministic")
    assert (team.battle, team.trained_maps) == (TRIO, frozenset("abc"))
    assert team.identity == {"1.steps": 3, "2.steps": 4, "3.steps": 3}
    assert team_of(baseline("idle"), baseline("novice")).trained_maps is None


def test_refusals():
    with pytest.raises(ConfigError, match="expected at least 2, got 1"):
        team_of(baseline("idle"))
    team = team_of(baseline("idle"), baseline("novice"))
    with pytest.raises(ConfigError, match=r"idle\+novice: expected a team of at least 2 mechs, got 1"):
        team.make(make_config("duel"), BattleNoise([1], (0, 0), 1))


def test_a_policy_that_cannot_be_made_closes_the_others():
    calls = []

    def fail(config, noise):
        raise ConfigError("broken")

    team = team_of(recorder("a", 0, calls, []), Player("b", "scripted", fail))
    with pytest.raises(ConfigError, match="broken"):
        team.make(TRIO, BattleNoise([1], (0, 0), 3))
    assert calls == [("close",)]


def test_rows_of_partners():
    x, p, q = (Player(name, "scripted", lambda config, noise: None) for name in "xpq")
    outcomes = {
        "x": [(1, 1), (1, 0)],
        "x+p": [(1, -1), (1, 1)],
        "p+x": [(0, 0), (-1, -1)],
        "p": [(-1, -1), (0, -1)],
        "x+q": [(1, 1), (1, 1)],
        "q+x": [(1, 1), (1, 1)],
    }
    matches = [made_match(team, "q", each, scenario="trio") for team, each in outcomes.items()]
    matches += [made_match("q", "q", [(1, -1), (0, 0)], scenario="trio")]
    assert [team.name for team in teams_beside(x, [p, q])] == ["x", "x+p", "p+x", "p", "x+q", "q+x", "q"]
    first, second = partner_rows(matches, x, [p, q])
    both, alone = np.array([0.5, 0.5]), map_scores(matches[3])
    assert (first["scenario"], first["opponent"], first["partner"]) == ("trio", "q", "p")
    assert first["mixed"] == vars(score_interval({"": both}))
    assert first["partner_self_play"] == vars(score_interval({"": alone}))
    assert first["gain"] == vars(difference_interval(both, alone))
    assert first["gain"]["estimate"] == pytest.approx(0.5 - 0.125)
    assert first["self_play"] == second["self_play"] == vars(score_interval({"": np.array([1.0, 0.75])}))
    assert (second["partner"], second["mixed"]["estimate"], second["gain"]["estimate"]) == ("q", 1.0, 0.5)


def test_rows_of_partners_that_are_opponents_too():
    """A pair is played once; its match counts for both."""
    x, p, q = (Player(name, "scripted", lambda config, noise: None) for name in "xpq")
    teams = [team.name for team in teams_beside(x, [p, q])]
    played = {frozenset((team, opponent)): (team, opponent) for opponent in "pq" for team in teams}
    matches = [made_match(*pair, [(1, 1) if pair[0] != "q" else (-1, 0)] * 2) for pair in played.values()]
    found = partner_rows(matches, x, [p, q])
    rows = {(row["opponent"], row["partner"]): row["partner_self_play"]["estimate"] for row in found}
    (p_q,) = [match for match in matches if {match.first, match.second} == {"p", "q"}]
    score = map_scores(p_q).mean()
    of_p = score if p_q.first == "p" else 1 - score
    assert rows["q", "p"] == of_p
    assert rows["p", "q"] == 1 - of_p
    assert len(rows) == 4
