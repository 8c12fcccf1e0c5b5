import json
from dataclasses import replace

import numpy as np
import pytest

from echelon_env.evaluate import freeze_suite, leaderboard
from echelon_env.evaluate.leaderboard import format_leaderboard, leaderboard_markdown, make_leaderboard
from echelon_env.evaluate.report import aggregate
from echelon_env.evaluate.statistics import score_interval
from echelon_env.evaluate.submission import Method, SubmissionError
from evaluate.submissions import STAMP, made_submission

MAPS = 12

TABLE = """\
small: duel-open, duel
suite {suite}, engine eeeeeeeeeeee, opponents 000000000000
not ranked: part.json has completed duel-open only

scores in %
method                     runs   interquartile mean                 mean   over
 1 A method …ry long name     3    68.1 [52.0, 80.7]    68.8 [54.0, 80.5]   runs
 2 B|[x](y) <b>               1    37.5 [25.0, 47.9]    37.5 [28.7, 47.2]   maps

battles won in %, against
method                 trivial    novice
A method …long name       70.1      67.4
B|[x](y) <b>              41.7      33.3

battles won in %, in
method               duel-open      duel
A method …long name       72.2      65.3
B|[x](y) <b>              41.7      33.3

submissions; decisions and CPU minutes of the training are as stated
method                      file    decisions CPU min       actions      results
A metho…ng name         a-0.json   12,345,678      45       sampled {hashes[0]}
A metho…ng name         a-1.json   12,345,678      45       sampled {hashes[1]}
A metho…ng name         a-2.json   12,345,678      45       sampled {hashes[2]}
B|[x](y) <b>              b.json            -       - deterministic {hashes[3]}

[low, high] are intervals of 95 %: over the maps, or over the training
runs of a method with at least 3 of them
verified a-0.json: 48 battles replayed, all as stated
FAILED b.json: battle 3 of duel against trivial: stated won, replayed lost
"""


@pytest.fixture(scope="module")
def suite():
    return freeze_suite("small", ["duel-open", "duel"], ["trivial", "novice"], MAPS)


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """The installed rules are those of the synthetic submissions."""
    monkeypatch.setattr(leaderboard, "stamp", lambda: dict(STAMP))


def drawn(suite, seed, win_rate, scenarios=("duel-open", "duel"), **fields):
    """A submission with random outcomes."""
    rng = np.random.default_rng(seed)

    def outcomes():
        return (2 * (rng.random((MAPS, 2)) < win_rate).astype(int) - 1).tolist()

    return made_submission(suite, {name: [outcomes() for _ in suite.opponents] for name in scenarios}, **fields)


@pytest.fixture
def submissions(suite):
    long = Method("A method with a very long name", url="https://example.org/a", decisions=12_345_678, cpu_minutes=45.0)
    short = Method("B|[x](y) <b>", authors="*B*", note="_n_")
    return {
        **{f"runs/a-{seed}.json": drawn(suite, seed, 0.7, method=long, identity={"steps": seed}) for seed in range(3)},
        "b.json": drawn(suite, 5, 0.4, method=short, action_mode="deterministic"),
        "part.json": drawn(suite, 6, 0.9, scenarios=["duel-open"], method=Method("Part")),
    }


def test_the_table_has_80_columns(submissions, suite):
    document = make_leaderboard(submissions)
    failure = "battle 3 of duel against trivial: stated won, replayed lost"
    document["verified"] = {
        "runs/a-0.json": {"battles": 48, "failures": []},
        "b.json": {"battles": 9, "failures": [failure]},
    }
    text = format_leaderboard(document)
    hashes = [submission.results_hash[:12] for submission in submissions.values()]
    assert f"{text}\n" == TABLE.format(suite=suite.hash[:12], hashes=hashes)
    assert max(map(len, text.splitlines())) == 80


def test_methods_are_ranked_by_interquartile_mean(submissions):
    (board,) = make_leaderboard(submissions)["boards"]
    assert [(row["rank"], row["method"], row["runs"]) for row in board["rows"]] == [
        (1, "A method with a very long name", 3),
        (2, "B|[x](y) <b>", 1),
    ]
    assert board["installed"]
    assert board["not_ranked"] == [{"file": "part.json", "method": "Part", "complete": ["duel-open"]}]


def test_figures_of_a_run_are_those_of_its_report(submissions):
    (board,) = make_leaderboard({"b.json": submissions["b.json"]})["boards"]
    (row,) = board["rows"]
    matches = submissions["b.json"].matches
    expected = aggregate(matches, "B|[x](y) <b>")
    assert (row["mean"], row["iqm"], row["interval_over"]) == (expected["mean"], expected["iqm"], "maps")
    novice = [match for match in matches if match.second == "novice"]
    assert row["wins_against"]["novice"] == sum(match.wins for match in novice) / (4 * MAPS)
    assert row["wins_in"]["duel"] == sum(match.wins for match in matches if match.scenario == "duel") / (4 * MAPS)


def test_three_runs_have_intervals_over_runs(submissions):
    runs = {file: each for file, each in submissions.items() if file.startswith("runs/")}
    (row,) = make_leaderboard(runs)["boards"][0]["rows"]
    figures = [aggregate(run.matches, run.method.name) for run in runs.values()]
    assert row["interval_over"] == "runs"
    for key in ("mean", "iqm"):
        values = np.array([each[key]["estimate"] for each in figures])
        assert row[key]["estimate"] == pytest.approx(values.mean())
        interval = score_interval({"": values})
        assert (row[key]["low"], row[key]["high"]) == (interval.low, interval.high)


def test_two_runs_have_intervals_over_maps(submissions):
    runs = {file: submissions[file] for file in ("runs/a-0.json", "runs/a-1.json")}
    (row,) = make_leaderboard(runs)["boards"][0]["rows"]
    assert (row["runs"], row["interval_over"]) == (2, "maps")
    alone = [aggregate(run.matches, run.method.name)["mean"] for run in runs.values()]
    assert row["mean"]["estimate"] == pytest.approx(np.mean([each["estimate"] for each in alone]))
    width = row["mean"]["high"] - row["mean"]["low"]
    assert all(width < each["high"] - each["low"] for each in alone)


def test_action_modes_are_different_methods(submissions):
    other = replace(submissions["b.json"], action_mode="mixed", stamp=submissions["b.json"].stamp)
    other = replace(other, matches=submissions["runs/a-0.json"].matches)
    other = replace(other, matches=tuple(replace(match, first="B|[x](y) <b>") for match in other.matches))
    (board,) = make_leaderboard({"b.json": submissions["b.json"], "mixed.json": other})["boards"]
    assert [(row["action_mode"], row["runs"]) for row in board["rows"]] == [("mixed", 1), ("deterministic", 1)]


def test_methods_of_other_authors_are_other_methods(suite):
    runs = {f"{name}.json": drawn(suite, len(name), 0.5, method=Method("PPO", name)) for name in ("A", "Be")}
    (board,) = make_leaderboard(runs)["boards"]
    assert sorted((row["method"], row["authors"], row["runs"]) for row in board["rows"]) == [
        ("PPO", "A", 1),
        ("PPO", "Be", 1),
    ]


def test_scenarios_can_be_chosen(submissions):
    (board,) = make_leaderboard(submissions, scenarios=["duel-open"])["boards"]
    assert board["scenarios"] == ["duel-open"]
    assert board["rows"][0]["method"] == "Part"
    assert len(board["rows"]) == 3
    (board,) = make_leaderboard({"part.json": submissions["part.json"]})["boards"]
    assert (board["scenarios"], board["not_ranked"]) == (["duel-open"], [])
    with pytest.raises(SubmissionError, match="expected some of duel, duel-open, got 'battle'"):
        make_leaderboard(submissions, scenarios=["battle"])


def test_other_rules_are_ranked_separately(submissions, suite):
    other = drawn(suite, 9, 0.9, stamp={**STAMP, "package": "0.9", "engine_hash": "d" * 64})
    document = make_leaderboard({"old.json": other, **submissions})
    assert [(board["installed"], len(board["rows"])) for board in document["boards"]] == [(True, 2), (False, 1)]
    text = format_leaderboard(document)
    assert "engine dddddddddddd, opponents 000000000000\nplayed with echelon-env 0.9: not comparable" in text


def test_runs_must_differ(submissions, suite):
    one = submissions["runs/a-0.json"]
    with pytest.raises(SubmissionError, match=r"a\.json and again\.json: expected different submissions, got the same"):
        make_leaderboard({"a.json": one, "again.json": replace(one, challenge="x")})
    same = {"weights_sha256": "f" * 64}
    runs = {f"{seed}.json": drawn(suite, seed, 0.5, identity=same) for seed in range(2)}
    with pytest.raises(SubmissionError, match="expected different training runs of 'made', got the same weights"):
        make_leaderboard(runs)


def test_nothing_complete_is_not_ranked(submissions):
    part = submissions["part.json"]
    cut = replace(part, matches=tuple(replace(match, battles=match.battles[:4]) for match in part.matches))
    document = make_leaderboard({"cut.json": cut})
    assert document["boards"][0]["rows"] == []
    assert "not ranked: cut.json has completed no scenario only" in format_leaderboard(document)


def test_markdown_shows_texts_of_strangers_as_they_are(submissions):
    text = leaderboard_markdown(make_leaderboard(submissions))
    assert "| [1 A method with a very long name](https://example.org/a) | 3 |" in text
    assert r"| 2 B\|\[x\](y) \<b\>, \*B\* | 1 |" in text
    assert "<b>" not in text


def test_names_of_files_are_printable(suite):
    document = make_leaderboard({"x/\x1b[31m|\n.json": drawn(suite, 1, 0.5)})
    assert "?[31m|?.json" in format_leaderboard(document)
    assert r"| ?\[31m\|?.json |" in leaderboard_markdown(document)


def test_many_opponents_take_several_blocks(suite):
    names = ["idle", "random", "trivial", "novice", "competent", "veteran", "expert"]
    wide = replace(suite, opponents=tuple(names))
    text = format_leaderboard(make_leaderboard({"wide.json": drawn(wide, 0, 0.5)}))
    assert max(map(len, text.splitlines())) <= 80
    assert sum(line.startswith("made ") for line in text.splitlines()) == 4
    assert all(name in text for name in names)


def test_the_document_is_json(submissions):
    document = make_leaderboard(submissions)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
