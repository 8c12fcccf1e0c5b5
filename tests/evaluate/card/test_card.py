"""The document of a card, its file and its text."""

import json

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.card import CardError, anatomy, chosen, format_card, make_card, read_card, write_card
from echelon_env.evaluate.statistics import map_scores

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
        rows=chosen(SMALL, ["medium's fire", "sound"]),
        on_battles=finished.append,
    )
    assert finished == sorted(finished) and finished[-1] == 3 * 2 * len(SEEDS)
    return made


def test_what_is_needed_is_worth_more_than_what_is_not(card):
    fire, sound = card["rows"]
    assert (fire["thing"], fire["group"]) == ("medium's fire", "class")
    assert fire["score"]["high"] < 0.5 < sound["score"]["high"]
    assert fire["worth"]["estimate"] == pytest.approx(0.5 - fire["score"]["estimate"])
    assert fire["worth"]["low"] == pytest.approx(0.5 - fire["score"]["high"])


def test_against_another_player_a_worth_is_the_difference_on_the_same_maps():
    novice, expert, rows = baseline("novice"), baseline("expert"), chosen(SMALL, ["medium's fire"])
    made = make_card(expert, novice, SMALL, SEEDS, scenario="small", rows=rows)
    whole = map_scores(play_match(expert, novice, SMALL, SEEDS, scenario="small"))
    assert made["score"]["estimate"] == pytest.approx(whole.mean())
    (row,) = made["rows"]
    assert row["worth"]["estimate"] == pytest.approx(whole.mean() - row["score"]["estimate"])
    assert row["worth"]["low"] <= row["worth"]["estimate"] <= row["worth"]["high"]


def test_the_anatomy_is_that_of_the_battles(card):
    totals = BattleTotals()
    match = play_match(baseline("expert"), baseline("expert"), SMALL, SEEDS, scenario="small", totals=totals)
    found = card["anatomy"]
    assert found == anatomy(match, totals, SMALL)
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
    alone = anatomy(play_match(baseline("expert"), baseline("novice"), SMALL, SEEDS, scenario="s"), totals, SMALL)
    assert alone["paints"] == both[0].get("paints", 0.0) / len(reasons)  # of the first player's team alone


def test_a_written_card_is_read_and_its_text_fits_a_terminal(card, tmp_path):
    write_card(tmp_path / "card.json", card)
    assert read_card(tmp_path / "card.json") == card == json.loads(json.dumps(card))
    text = format_card(card)
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("expert in small against itself, 12 battles a row\n")
    assert text.index("medium's fire") > text.index("sound")  # by group, in the order of `GROUPS`
    for line in ("battles that end by elimination", "autocannon", "worth, %"):
        assert line in text


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "echelon-replay", "the format is not 'echelon-card'"),
        (("version",), 0, "expected version 1, got 0"),
        (("player",), {}, "'player' has no name"),
        (("scenario",), None, "'opponent' or 'scenario' is no text"),
        (("battles",), "12", "'battles' or 'score' is no number"),
        (("rows",), {}, "'rows' is no list"),
        (("rows", 0, "group"), "magic", "a row has no name"),
        (("rows", 0, "score", "low"), 2.0, "has no score"),
        (("rows", 0, "worth"), None, "has no score"),
        (("anatomy",), [], "there is no 'anatomy'"),
        (("anatomy", "seconds"), "long", "'anatomy' has no numbers"),
        (("anatomy", "weapons", "laser"), 3, "a weapon has no name"),
        (("anatomy", "weapons", "laser", "shots"), True, "has no numbers"),
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


def test_unknown_rows_are_named_with_the_nearest():
    with pytest.raises(ConfigError, match=r"'lasers'.*'laser'"):
        chosen(SMALL, ["lasers"])
    assert [each.name for each in chosen(SMALL, ["sound", "laser", "sound"])] == ["sound", "laser"]
