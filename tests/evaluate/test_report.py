import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, mannwhitneyu, trim_mean

from echelon_env import make_config
from echelon_env.evaluate import Battle, Match, Player, Suite, SuiteScenario, stamp
from echelon_env.evaluate.battle_totals import COUNTED
from echelon_env.evaluate.estimates import score_interval
from echelon_env.evaluate.report import make_report
from echelon_env.evaluate.seeds import evaluation_seed
from echelon_env.evaluate.tables import ENOUGH_MAPS, WIDTH, format_report
from evaluate.made import made_match

STAMP = stamp()
GOLDEN = Path(__file__).parent / "report.txt"


def player(name: str, **fields: object) -> Player:
    return Player(name, "scripted", lambda config, noise: None, **fields)


def match(first: str, second: str, strength: float = 0.7, scenario: str = "duel", maps: int = 12) -> Match:
    """A synthetic match in which the first player wins each battle with a probability, and some are drawn."""
    rng = np.random.default_rng([maps, *first.encode(), *second.encode(), *scenario.encode()])
    seeds = [evaluation_seed(0, index) for index in range(maps)]
    outcomes = np.where(rng.random(2 * maps) < 0.1, 0, np.where(rng.random(2 * maps) < strength, 1, -1)).tolist()
    battles = tuple(
        Battle(i, seeds[i // 2], f"{scenario}-{i // 2}", i % 2, outcome, "elimination", 60.5, (3.0, 1.0), (1, 0))
        for i, outcome in enumerate(outcomes)
    )
    counts = dict.fromkeys(COUNTED, 1.0) | {"mechs": 2.0 * maps, "shots": 40.0, "hits": 10.0, "damage_dealt": 2412.0}
    return Match(scenario, first, second, ("scripted",) * 2, battles, ({"medium": counts}, {"light": counts}))


def round_robin(names: list[str], scenarios: tuple[str, ...] = ("duel", "skirmish"), maps: int = 12) -> list[Match]:
    return [match(a, b, 0.7, s, maps) for s in scenarios for a, b in itertools.combinations(names, 2)]


def document(matches: list[Match], names: list[str], **arguments: object) -> dict:
    """A report that has been written and read."""
    arguments = {"suite": None, "stamp": STAMP, "players": [player(name) for name in names], **arguments}
    return json.loads(json.dumps(make_report(matches, **arguments), allow_nan=False))


def score(m: Match) -> np.ndarray:
    """The first player's scores of the maps, computed independently."""
    return (1 + np.array([battle.outcome for battle in m.battles]).reshape(-1, 2).mean(axis=1)) / 2


def test_a_report_records_what_was_played():
    made = match("a", "b")
    report = document([made], ["a"], configs={"duel": make_config("duel")})
    assert report["stamp"] == STAMP
    assert (report["suite"], report["opponents"]) == (None, ["b"])
    scenario = report["scenarios"]["duel"]
    assert scenario["seeds"] == [battle.seed for battle in made.battles[::2]]
    assert scenario["map_hashes"] == [f"duel-{index}" for index in range(12)]
    assert scenario["config"] == make_config("duel").to_dict()
    (row,) = report["matches"]
    assert row["battles"]["outcome"] == [battle.outcome for battle in made.battles]
    assert row["battles"]["scores"] == [[3.0, 1.0]] * 24
    for name, outcome in (("win", 1), ("draw", 0), ("loss", -1)):
        count = row["battles"]["outcome"].count(outcome)
        low, high = binomtest(count, 24).proportion_ci(0.95, method="wilson")
        assert row[name] == pytest.approx({"count": count, "estimate": count / 24, "low": low, "high": high})


def test_the_aggregates_are_over_all_maps_that_a_player_played():
    matches = [match("a", "b"), match("c", "a", 0.4), match("b", "c", 0.5, "skirmish")]
    report = document(matches, ["a", "b", "c"])
    scores = (score(matches[0]) + 1 - score(matches[1])) / 2
    aggregate = report["aggregate"]["a"]
    assert (aggregate["maps"], aggregate["opponents"]) == (12, ["b", "c"])
    mean = score_interval({"duel": scores})
    assert aggregate["mean"] == pytest.approx({"estimate": scores.mean(), "low": mean.low, "high": mean.high})
    assert aggregate["iqm"]["estimate"] == pytest.approx(trim_mean(scores, 0.25))
    assert aggregate["iqm"]["low"] <= aggregate["iqm"]["estimate"] <= aggregate["iqm"]["high"]
    assert report["aggregate"]["b"]["maps"] == 24  # two scenarios


def test_the_interquartile_mean_of_few_maps_has_no_interval():
    few, enough = document(round_robin(["a", "b"], maps=9), ["a", "b"]), document([match("a", "b", maps=10)], ["a"])
    iqm = few["aggregate"]["a"]["iqm"]
    assert iqm["low"] is iqm["high"] is None
    assert enough["aggregate"]["a"]["iqm"]["low"] is not None
    row = next(line for line in format_report(few).splitlines() if line.startswith("a  ") and line.endswith(" -"))
    assert row.split()[-2] == f"{100 * iqm['estimate']:.1f}"


def test_improvement_is_over_the_tasks_that_both_have():
    matches = [match("a", "x", 0.9), match("x", "b", 0.6), match("a", "y"), match("a", "b")]
    report = document(matches, ["a", "b"])
    (pair,) = report["probability_of_improvement"]
    assert (pair["player"], pair["over"], pair["tasks"]) == ("a", "b", [["duel", "x"]])
    x, y = score(matches[0]), 1 - score(matches[1])
    assert pair["estimate"] == pytest.approx(mannwhitneyu(x, y).statistic / (len(x) * len(y)))
    assert document([match("a", "b")], ["a", "b"])["probability_of_improvement"] == []


def test_actions_that_were_not_finite_are_reported():
    fine, bad = match("a", "b"), match("a", "c")
    bad = dataclasses.replace(
        bad, classes=(bad.classes[0], {"light": bad.classes[1]["light"] | {"bad_actions": 1234.0}})
    )
    report = document([fine, bad], ["a"])
    assert report["bad_actions"] == {"a": 2, "b": 1, "c": 1234}  # each made class has one
    text = format_report(report)
    assert "c: 1,234 entries of its actions not finite, played as 0" in text.splitlines()
    twice = document([fine, match("a", "c")], ["a"])["classes"]["a"]["medium"]
    assert (twice["mechs"], twice["damage_dealt"], twice["kills"]) == (48.0, 4824.0, 2.0)


def test_a_suite_is_complete_when_everything_of_it_was_played(monkeypatch):
    monkeypatch.setattr(Suite, "check_match", lambda self, made: None)
    seeds = tuple(evaluation_seed(0, index) for index in range(12))
    suite = Suite("s", (SuiteScenario("duel", "", "", seeds), SuiteScenario("skirmish", "", "", seeds)), ("a", "b"))
    names = ["a", "c"]
    whole = [match(x, y, scenario=s) for s in ("duel", "skirmish") for x, y in (("a", "b"), ("c", "a"), ("c", "b"))]
    assert document(whole, names, suite=suite)["suite"] == {"name": "s", "hash": suite.hash, "complete": True}
    assert not document(whole[:-1], names, suite=suite)["suite"]["complete"]
    short = [*whole[:-1], match("c", "b", scenario="skirmish", maps=11)]
    assert not document(short, names, suite=suite)["suite"]["complete"]


def test_common_maps_are_one_sample():
    """A second opponent with the same results adds no information, nor does a scenario with the same seeds."""
    first, other = match("a", "b", 0.5, maps=40), match("a", "c", 0.5, maps=40)
    alike, elsewhere = dataclasses.replace(first, second="c"), dataclasses.replace(first, scenario="skirmish")
    played = ([first], [first, alike], [first, other], [first, elsewhere])
    once, twice, apart, both = (document(matches, ["a"])["aggregate"]["a"] for matches in played)
    assert {**twice, "opponents": ["b"]} == once
    assert apart["mean"]["high"] - apart["mean"]["low"] < once["mean"]["high"] - once["mean"]["low"]
    assert (both["mean"], both["iqm"]) == (pytest.approx(once["mean"]), pytest.approx(once["iqm"]))


def test_tasks_with_equal_joined_names_are_kept_separate():
    matches = [match("a", "y", scenario="x-v-x"), match("a", "x-v-y", scenario="x")]
    played = [replaced for m in matches for replaced in (m, dataclasses.replace(m, first="b"))]
    (pair,) = document(played, ["a", "b"])["probability_of_improvement"]
    assert pair["tasks"] == [["x-v-x", "y"], ["x", "x-v-y"]]


@pytest.mark.parametrize(("known", "enough"), [(ENOUGH_MAPS - 1, False), (ENOUGH_MAPS, True), (None, True)])
def test_what_is_known_of_a_player(known, enough):
    hashes = None if known is None else frozenset(["duel-0", "duel-3", *map(str, range(known - 2))])
    identity = {"checkpoint": "0000300000", "steps": 300_000, "weights": "ab12"}
    made = document([match("a", "b")], [], players=[player("a", trained_maps=hashes, identity=identity)])
    (row,) = made["players"]
    common = None if known is None else 2
    assert row["identity"] == identity
    assert (row["maps"], row["maps_trained_on"], row["trained_maps"]) == (12, common, known)
    text = format_report(made)
    assert ("too few to speak of unseen maps" in text) != enough
    assert (f"  on 12 maps, 2 of the {known or 0:,} trained on" in text) == (known is not None)


@pytest.mark.parametrize(
    ("matches", "names", "error"),
    [
        ([], [], "at least one match and one player, got 0 and 0"),
        ([match("a", "b")], [], "at least one match and one player, got 1 and 0"),
        ([match("a", "b"), match("b", "a")], ["a"], "got two of 'a' and 'b' in 'duel'"),
        ([match("a", "b")], ["a", "a"], "got 'a' twice"),
        ([match("a", "b")], ["c"], "'c' is in none"),
    ],
)
def test_impossible_reports_are_errors(matches, names, error):
    with pytest.raises(ValueError, match=error):
        document(matches, names)


LONG = ["runs/a-very-long-name-of-a-run/with/folders/checkpoints/0000300000", *(f"player-{i:030}" for i in range(6))]


def tables(names: list[str]) -> str:
    """The tables without the line of the versions."""
    return format_report(document(round_robin(names, maps=20), names)).partition("\n")[2] + "\n"


def test_the_tables_are_the_golden_ones():
    """`python tests/evaluate/test_report.py` writes them again."""
    assert tables(["a", "b", "c"]) == GOLDEN.read_text(encoding="utf-8")


def test_tables_fit_80_columns():
    assert max(map(len, tables(LONG).splitlines())) <= WIDTH == 80
    assert "row against column" not in format_report(document([match("a", "b")], ["a"])), "a pairing has no matrix"


if __name__ == "__main__":
    GOLDEN.write_text(tables(["a", "b", "c"]), encoding="utf-8")


def test_the_table_of_partners_fits_a_terminal():
    teams = ["x", "x+p", "p+x", "p"]
    matches = [made_match(team, "q", [(1, 1) if team == "p" else (-1, -1)] * 10) for team in teams]
    players = {name: Player(name, "scripted", lambda config, noise: None) for name in teams}
    report = make_report(matches, suite=None, stamp=STAMP, players=[*players.values()], partners=[players["p"]])
    assert report["partners"][0]["gain"]["estimate"] == -1.0
    lines = format_report(report).splitlines()
    assert all(len(line) <= 80 for line in lines)
    (row,) = [line for line in lines if line.startswith("p  ")]
    assert row.split() == ["p", "0.0", "[0.0,", "27.8]", "100.0", "[72.2,", "100.0]", "-100.0", "[-100.0,", "-44.5]"]
