"""The document of a card, its file and its text."""

import json

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.card import (
    CardError,
    battle_statistics,
    format_card,
    make_card,
    named_ablations,
    read_card,
    write_card,
)
from echelon_env.evaluate.card.summary import WEAPONS
from echelon_env.evaluate.estimates import map_scores

SMALL = make_config("duel-open", max_steps=120)
SEEDS = [evaluation_seed(7, index) for index in range(6)]


@pytest.fixture(scope="module")
def card():
    finished = []
    made = make_card(
        baseline("expert"),
        baseline("expert"),
        SMALL,
        SEEDS,
        scenario="small",
        rows=named_ablations(SMALL, ["medium fire", "direction of damage"]),
        on_battles=lambda battles, name: finished.append((battles, name)),
    )
    assert finished == sorted(finished) and finished[-1] == (3 * 2 * len(SEEDS), "expert without direction of damage")
    return made


def test_the_score_drops_without_what_is_needed(card):
    fire, damage = card["rows"]
    assert (fire["without"], fire["group"]) == ("medium fire", "class")
    assert fire["score"]["high"] < 0.5 < damage["score"]["high"]
    assert fire["drop"]["estimate"] == pytest.approx(0.5 - fire["score"]["estimate"])
    assert fire["drop"]["low"] == pytest.approx(0.5 - fire["score"]["high"])


def test_against_another_player_a_drop_is_the_difference_on_the_same_maps():
    novice, expert, rows = baseline("novice"), baseline("expert"), named_ablations(SMALL, ["medium fire", "warnings"])
    made = make_card(expert, novice, SMALL, SEEDS, scenario="small", rows=rows)
    whole = map_scores(play_match(expert, novice, SMALL, SEEDS, scenario="small"))
    assert made["score"]["estimate"] == pytest.approx(whole.mean())
    for row in made["rows"]:
        assert row["drop"]["estimate"] == pytest.approx(whole.mean() - row["score"]["estimate"])
        assert -1 <= row["drop"]["low"] < row["drop"]["high"] <= 1


def test_the_statistics_are_those_of_the_battles(card):
    totals = BattleTotals()
    match = play_match(baseline("expert"), baseline("expert"), SMALL, SEEDS, scenario="small", totals=totals)
    found = card["statistics"]
    assert found == battle_statistics(match, totals, SMALL)
    reasons = [battle.reason for battle in match.battles]
    for name in ("zone_control", "elimination", "time_limit"):
        assert found[f"ends_by_{name}"] == reasons.count(name) / len(reasons)
    assert found["seconds"] == np.median([battle.seconds for battle in match.battles])
    both = [totals.sums("own"), totals.sums("enemy")]
    alive = sum(sums["alive_seconds"] for sums in both)
    assert found["zone_share"] == pytest.approx(sum(sums.get("zone_seconds", 0.0) for sums in both) / alive)
    assert found["jet_share"] is None  # no mech of a duel has jets
    assert sum(of["damage"] for of in found["weapons"].values()) == pytest.approx(1.0)
    shots = sum(sums.get("weapon/laser/shots", 0.0) for sums in both)
    assert found["weapons"]["laser"]["shots"] == pytest.approx(shots / len(reasons))
    other = BattleTotals()
    unequal = play_match(baseline("expert"), baseline("novice"), SMALL, SEEDS, scenario="small", totals=other)
    alone = battle_statistics(unequal, other, SMALL)  # of the first player's team
    assert alone["weapons"]["autocannon"]["shots"] == other.sums("own")["weapon/autocannon/shots"] / len(reasons)


def test_a_written_card_is_read_and_its_text_fits_a_terminal(card, tmp_path):
    write_card(tmp_path / "card.json", card)
    assert read_card(tmp_path / "card.json") == card == json.loads(json.dumps(card))
    text = format_card(card)
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("expert (scripted actions) against itself\nin small, 12 battles a row")
    assert text.index("medium fire") > text.index("direction of damage")  # by group, in the order of `GROUPS`
    for line in ("battles that end by elimination", "autocannon", "drop"):
        assert line in text


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "echelon-replay", "the format is not 'echelon-card'"),
        (("version",), 0, "expected version 1, got 0"),
        (("player",), {}, "'player' has no name"),
        (("opponent", "identity"), None, "'opponent' has no identity"),
        (("scenario",), "a\ud800b", "'scenario' is no text"),
        (("battles",), "12", "'battles' or 'score' is no number"),
        (("rows",), {}, "'rows' is no list"),
        (("rows", 0, "group"), "magic", "a row has no name"),
        (("rows", 0, "score", "low"), 2.0, "no score"),
        (("rows", 0, "drop"), None, "no score"),
        (("statistics",), [], "there are no 'statistics'"),
        (("statistics",), {"weapons": {}}, "'statistics': expected ends_by_zone_control, "),
        (("statistics", "seconds"), "long", "'statistics': expected numbers"),
        (("statistics", "weapons", "laser"), 3, "'laser': expected shots, "),
        (("statistics", "weapons", "laser", "shots"), True, "'laser': expected numbers"),
        (("statistics", "weapons", "a\nb"), dict.fromkeys(WEAPONS), "a weapon has no printable name"),
    ],
)
def test_what_is_no_card_is_refused(card, tmp_path, path, value, message):
    document = json.loads(json.dumps(card))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(document))
    with pytest.raises(CardError, match="expected a card") as raised:
        read_card(file)
    assert message in str(raised.value) and str(file) in str(raised.value)
