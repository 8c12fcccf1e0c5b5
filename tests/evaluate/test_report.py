import dataclasses
import itertools
import json
import re
import sys

import numpy as np
import pytest
from scipy.stats import binomtest, mannwhitneyu, trim_mean

from echelon_env import make_config
from echelon_env.evaluate import Battle, Match, Player, Suite, SuiteError, SuiteScenario, report, stamp
from echelon_env.evaluate.battle_totals import COUNTED
from echelon_env.evaluate.cross_play import PayoffMatrix, cross_play
from echelon_env.evaluate.report import INTERVALS_FILE, MATRIX_FILE, REPORT_FILE, make_report, write_report
from echelon_env.evaluate.seeds import evaluation_seed
from echelon_env.evaluate.statistics import score_interval
from echelon_env.evaluate.tables import ENOUGH_MAPS, WIDTH, describe_maps, format_report, format_share, shorten
from echelon_env.layout.measures import MEASURES

STAMP = stamp()


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


def test_a_duplicate_opponent_adds_no_information():
    first, other = match("a", "b", 0.5, maps=40), match("a", "c", 0.5, maps=40)
    alike = dataclasses.replace(first, second="c")
    played = ([first], [first, alike], [first, other])
    once, twice, apart = (document(matches, ["a"])["aggregate"]["a"] for matches in played)
    assert {**twice, "opponents": ["b"]} == once
    assert apart["mean"]["high"] - apart["mean"]["low"] < once["mean"]["high"] - once["mean"]["low"]


def test_scenarios_that_share_seeds_are_one_sample_in_the_aggregates():
    first = match("a", "b", 0.5, maps=40)
    both = document([first, dataclasses.replace(first, scenario="skirmish")], ["a"])["aggregate"]["a"]
    once = document([first], ["a"])["aggregate"]["a"]
    assert both["mean"] == pytest.approx(once["mean"])
    assert both["iqm"] == pytest.approx(once["iqm"])


def test_the_interquartile_mean_of_few_maps_has_no_interval(tmp_path):
    few, enough = document(round_robin(["a", "b"], maps=9), ["a", "b"]), document([match("a", "b", maps=10)], ["a"])
    iqm = few["aggregate"]["a"]["iqm"]
    assert iqm["low"] is iqm["high"] is None
    assert enough["aggregate"]["a"]["iqm"]["low"] is not None
    row = next(line for line in format_report(few).splitlines() if line.startswith("a  ") and line.endswith(" -"))
    assert row.split()[-2] == f"{100 * iqm['estimate']:.1f}"
    assert write_report(tmp_path / "report", few)


def test_improvement_is_over_the_tasks_that_both_have():
    matches = [match("a", "x", 0.9), match("x", "b", 0.6), match("a", "y"), match("a", "b")]
    report = document(matches, ["a", "b"])
    (pair,) = report["probability_of_improvement"]
    assert (pair["player"], pair["over"], pair["tasks"]) == ("a", "b", [["duel", "x"]])
    x, y = score(matches[0]), 1 - score(matches[1])
    assert pair["estimate"] == pytest.approx(mannwhitneyu(x, y).statistic / (len(x) * len(y)))
    assert document([match("a", "b")], ["a", "b"])["probability_of_improvement"] == []


def test_the_matrix_is_its_own_mirror():
    names = ["a", "b", "c"]
    cross_play = document(round_robin(names), names)["cross_play"]
    assert cross_play["players"] == names
    for panel in (*cross_play["scenarios"].values(), cross_play["pooled"]):
        for i, j in itertools.combinations(range(3), 2):
            assert panel["score"][i][j] == pytest.approx(1 - panel["score"][j][i])
            assert panel["wins"][i][j] == panel["losses"][j][i]
        assert all(panel[name][i][i] is None for i in range(3) for name in panel)
    duel = {name: cells[0][1] for name, cells in cross_play["scenarios"]["duel"].items()}
    made = match("a", "b")
    assert duel["score"] == pytest.approx(score(made).mean())
    assert (duel["wins"], duel["draws"], duel["losses"]) == (made.wins, made.draws, made.losses)
    assert duel["low"] < duel["score"] < duel["high"]


def test_statistics_of_classes_are_summed_over_a_players_matches():
    classes = document([match("a", "b"), match("c", "a")], ["a"])["classes"]["a"]
    assert set(classes) == {"medium", "light"}  # as the first player, and as the second
    twice = document([match("a", "b"), match("a", "c")], ["a"])["classes"]["a"]["medium"]
    assert (twice["mechs"], twice["damage_dealt"], twice["kills"]) == (48.0, 4824.0, 2.0)


def test_marl_eval_gets_the_tasks_that_all_players_have():
    suite = [match(a, b, 0.5, s) for s in ("duel", "skirmish") for a in ("a", "b") for b in ("x", "y")]
    tasks = document(suite, ["a", "b"])["marl_eval"]["echelon"]
    assert set(tasks) == {"duel-v-x", "duel-v-y", "skirmish-v-x", "skirmish-v-y"}
    assert all(set(algorithms) == {"a", "b"} for algorithms in tasks.values())
    run = tasks["duel-v-x"]["a"]["run_0"]
    outcomes = np.array([battle.outcome for battle in suite[0].battles])
    assert run["absolute_metrics"] == {"win_rate": (outcomes == 1).tolist(), "score": ((1 + outcomes) / 2).tolist()}
    assert run["step_0"] == {"step_count": 0, **run["absolute_metrics"]}
    assert [*run][-1] == "absolute_metrics"

    tasks = document(round_robin(["a", "b", "c"]), ["a", "b", "c"])["marl_eval"]["echelon"]
    assert set(tasks) == {"duel", "skirmish"}
    for name in "abc":
        assert len(tasks["duel"][name]["run_0"]["absolute_metrics"]["win_rate"]) == 2 * 24
    last = tasks["duel"]["b"]["run_0"]["absolute_metrics"]["win_rate"]
    lost = [battle.outcome == -1 for battle in match("a", "b").battles]
    assert last[:24] == lost


def test_tasks_with_equal_joined_names_are_kept_separate():
    matches = [match("a", "y", scenario="x-v-x"), match("a", "x-v-y", scenario="x")]
    report = document(matches, ["a"])
    assert len(report["marl_eval"]["echelon"]) == 2
    played = [replaced for m in matches for replaced in (m, dataclasses.replace(m, first="b"))]
    (pair,) = document(played, ["a", "b"])["probability_of_improvement"]
    assert pair["tasks"] == [["x-v-x", "y"], ["x", "x-v-y"]]


def test_a_players_identity_is_kept_and_its_steps_are_marl_evals():
    identity = {"checkpoint": "0000300000", "steps": 300_000, "weights": "ab12"}
    report = document([match("a", "b"), match("c", "b")], [], players=[player("a", identity=identity), player("c")])
    assert [row["identity"] for row in report["players"]] == [identity, {}]
    algorithms = report["marl_eval"]["echelon"]["duel-v-b"]
    assert [algorithms[name]["run_0"]["step_0"]["step_count"] for name in "ac"] == [300_000, 0]


def test_actions_that_were_not_finite_are_reported():
    fine, bad = match("a", "b"), match("a", "c")
    bad = dataclasses.replace(
        bad, classes=(bad.classes[0], {"light": bad.classes[1]["light"] | {"bad_actions": 1234.0}})
    )
    report = document([fine, bad], ["a"])
    assert report["bad_actions"] == {"a": 2, "b": 1, "c": 1234}  # each made class has one
    text = format_report(report)
    assert "c: 1,234 entries of its actions not finite, played as 0" in text.splitlines()
    report = document([dataclasses.replace(fine, classes=({}, {}))], ["a"])
    assert "not finite" not in format_report(report)


@pytest.mark.parametrize("known", [ENOUGH_MAPS - 1, ENOUGH_MAPS, None])
def test_a_report_states_which_maps_were_trained_on(known):
    hashes = None if known is None else frozenset(map(str, range(known)))
    report = document([match("a", "b")], [], players=[player("a", trained_maps=hashes)])
    text = format_report(report)
    assert ("too few to speak of unseen maps" in text) == (known == ENOUGH_MAPS - 1)
    assert (f"  on 12 maps, none of the {known or 0:,} trained on" in text) == (known is not None)
    assert describe_maps(1, None, known) == "on 1 map"


def test_shares_are_percentages_with_their_interval():
    assert format_share({"estimate": 0.5204, "low": 0.451, "high": 1.0}) == "52.0 [45.1, 100.0]"
    assert format_share({"estimate": 0.52, "low": None, "high": None}) == "52.0 -"


def test_players_state_which_of_the_maps_they_trained_on():
    trained = player("a", trained_maps=frozenset(["duel-0", "duel-3", "elsewhere"]))
    (row,) = document([match("a", "b"), match("b", "c", scenario="skirmish")], [], players=[trained])["players"]
    assert (row["maps"], row["maps_trained_on"], row["trained_maps"]) == (12, 2, 3)


def test_impossible_reports_are_errors():
    with pytest.raises(ValueError, match="at least one match and one player, got 0 and 0"):
        document([], [])
    with pytest.raises(ValueError, match="at least one match and one player, got 1 and 0"):
        document([match("a", "b")], [])
    with pytest.raises(ValueError, match="got two of 'a' and 'b' in 'duel'"):
        document([match("a", "b"), match("b", "a")], ["a"])
    with pytest.raises(ValueError, match="got 'a' twice"):
        document([match("a", "b")], ["a", "a"])
    with pytest.raises(ValueError, match="'c' is in none"):
        document([match("a", "b")], ["c"])


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


def test_a_suite_refuses_other_maps():
    suite = Suite("s", (SuiteScenario("duel", "", "", (evaluation_seed(1, 0),)),), ("b",))
    with pytest.raises(SuiteError, match="not the first"):
        document([match("a", "b")], ["a"], suite=suite)


LONG = ["runs/a-very-long-name-of-a-run/with/folders/checkpoints/0000300000", *(f"player-{i:030}" for i in range(6))]


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"], LONG])
def test_tables_fit_80_columns(names):
    text = format_report(document(round_robin(names, maps=20), names))
    assert max(map(len, text.splitlines())) <= WIDTH == 80
    assert all(name in text for name in names if len(name) < 12)


def test_tables_have_the_reports_numbers():
    names = ["a", "b", "c"]
    report = document(round_robin(names), names)
    lines = format_report(report).splitlines()
    row = next(line for line in lines if line.startswith("v b "))
    shown = re.findall(r"([\d.]+) \[(\d+), (\d+)\]", row)
    for name, numbers in zip(("win", "draw", "loss", "score"), shown, strict=True):
        estimate, low, high = map(float, numbers)
        share = report["matches"][0][name]
        assert estimate == pytest.approx(100 * share["estimate"], abs=0.05)
        assert low <= 100 * share["low"] < low + 1
        assert high - 1 < 100 * share["high"] <= high
    matrix = lines[next(i for i, line in enumerate(lines) if line.startswith("all scenarios")) :]
    pooled = report["cross_play"]["pooled"]["score"]
    assert matrix[2].split() == ["a", "-", f"{100 * pooled[0][1]:.1f}", f"{100 * pooled[0][2]:.1f}"]
    start = lines.index("a: per mech and battle")
    cells = dict(line.rsplit(maxsplit=1) for line in lines[start + 2 : lines.index("", start)])
    assert lines[start + 1].split() == ["medium"]
    assert (cells["mechs"], cells["damage dealt, HP"], cells["accuracy, %"]) == ("96", "100.5", "25.0")
    assert cells.keys() == {"mechs", "accuracy, %", *(each.heading for each in MEASURES if each.counted)}


def test_one_pairing_has_no_matrix():
    assert "row against column" not in format_report(document([match("a", "b")], ["a"]))


def test_names_are_cut_in_the_middle():
    assert shorten("abc", 3) == "abc"
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("abcdefghij", 6) == "abc…ij"


def test_a_report_is_written_completely(tmp_path):
    made = document(round_robin(["a", "b", "c"]), ["a", "b", "c"])
    assert write_report(tmp_path / "x" / "report", made)
    assert {path.name for path in (tmp_path / "x" / "report").iterdir()} == {REPORT_FILE, MATRIX_FILE, INTERVALS_FILE}
    assert json.loads((tmp_path / "x" / "report" / REPORT_FILE).read_text()) == made
    with pytest.raises(FileExistsError):
        write_report(tmp_path / "x" / "report", made)


def test_the_matrix_is_drawn_as_it_was_computed(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(report, "save_matrix", lambda path, matrix, rows: drawn.append((matrix, rows)))
    monkeypatch.setattr(report, "save_intervals", lambda path, intervals: drawn.append(intervals))
    matches = [match("a", "b"), match("a", "c", scenario="skirmish")]
    made = document(matches, ["a", "b"])
    write_report(tmp_path / "two", made)
    ((matrix, rows), intervals) = drawn
    expected = cross_play(matches)
    assert (matrix.players, [*matrix.scenarios], rows) == (expected.players, [*expected.scenarios], ["a", "b"])
    panels = ((matrix.pooled, expected.pooled), (matrix.scenarios["duel"], expected.scenarios["duel"]))
    for field, (ours, theirs) in itertools.product(dataclasses.fields(PayoffMatrix), panels):
        np.testing.assert_array_equal(getattr(ours, field.name), getattr(theirs, field.name))
    assert set(intervals) == {"mean score", "interquartile mean"}
    assert intervals["interquartile mean"]["b"].low == made["aggregate"]["b"]["iqm"]["low"]

    write_report(tmp_path / "one", document(matches, ["a"]))
    assert set(drawn[-1]) == {"win rate", "mean score"}
    assert set(drawn[-1]["win rate"]) == {"duel: a v b", "skirmish: a v c"}


def test_without_pictures_only_the_document_is_written(tmp_path, monkeypatch):
    made = document([match("a", "b")], ["a"])
    assert not write_report(tmp_path / "plain", made, pictures=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it raises ModuleNotFoundError
    assert not write_report(tmp_path / "missing", made)
    for name in ("plain", "missing"):
        assert [path.name for path in (tmp_path / name).iterdir()] == [REPORT_FILE]


def test_nothing_is_half_written(tmp_path, monkeypatch):
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "_draw", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_report(tmp_path / "report", document([match("a", "b")], ["a"]))
    assert list(tmp_path.iterdir()) == []
