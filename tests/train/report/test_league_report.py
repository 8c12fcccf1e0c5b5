"""The report of a league."""

import json
import shutil

import numpy as np
import pytest

from echelon_env.replays import read_replay
from echelon_train.league.analysis import analyse
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.jobs import run_job
from echelon_train.league.playing.runner import pairing
from echelon_train.league.ratings.glicko2 import REACH
from echelon_train.league.store.promotion import promote
from echelon_train.report import write_league_report
from echelon_train.report.league_runs import read_learners
from train.league.leagues import CONFIG, played, saved
from train.report import totals
from train.report.parsed import Parsed, number


def report(league, tmp_path, **options):
    out = tmp_path / "report.html"
    write_league_report(league.path, out, **{"replays": 0, **options})
    return Parsed(out)


@pytest.fixture
def grown(league, tmp_path):
    """The small league with three policies, of which one is retired and one the champion."""
    league.add_checkpoint(saved(tmp_path / "one", 1, 1000), "main", "main-1")
    league.add_checkpoint(saved(tmp_path / "two", 2, 2500), "main", "main-2", "main-1")
    league.add_checkpoint(saved(tmp_path / "three", 3, 10), "exploiter", "old", "main-1")
    for number_of_match, (first, second) in enumerate(
        [("main-1", "novice"), ("main-2", "main-1"), ("old", "novice"), ("old", "main-1")], 4
    ):
        league.record(played(first, second, (1, 0, 1, 1), number_of_match))
    league.rate_matches()
    promote(league, "main-1", play=lambda first, second: played(first, second, (1, 1), 20))
    promote(league, "main-2", play=lambda first, second: played(first, second, (1, 1, 1, -1), 21), k=0.0)
    league.retire("old")
    return league


@pytest.mark.long
def test_the_tables_are_those_of_the_league(grown, tmp_path):
    page = report(grown, tmp_path)
    active = [each for each in grown.standings() if each.member.state == "active"]
    names = [each.member.name for each in active]
    header, *rows = page.tables["standings"]
    champion = grown.champion().name
    assert [row[0] for row in rows] == [
        f"{rank} {name}{' ★' if name == champion else ''}" for rank, name in enumerate(names, 1)
    ]
    analysis = analyse(grown)
    games = analysis.payoffs.among(names)
    for row, each in zip(rows, active, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert cells["rating"] == f"{each.rating.rating:.0f} ± {REACH * each.rating.deviation:.0f}"
        assert cells["maps"] == str(each.games)
        assert cells["exploiters, %"].startswith("87.5 [" if each.member.name == "main-1" else "-")
        strength = analysis.strength(each.member.name)
        assert cells["Bradley-Terry"] == ("-" if strength is None else "{:.0f} [{:.0f}, {:.0f}]".format(*strength))
    for i, row in enumerate(page.tables["matrix"][1:]):
        for j, cell in enumerate(row[1:]):
            if i == j:
                assert cell == ""
            elif np.isnan(games.score[i, j]):
                assert cell == "-"
            else:
                assert number(cell) == pytest.approx(100 * games.score[i, j], abs=0.051)
    assert [row[0] for row in page.tables["champions"][1:]] == ["2 main-2", "1 main-1"]
    assert page.tables["champions"][1][1] == "main-1"
    assert page.loaded == [] and "unsafe-inline'; style" not in page.policy


@pytest.mark.long
def test_learners_and_best_responses_in_its_folder(grown, tmp_path, finished_run):
    main = shutil.copytree(finished_run, grown.path / "runs" / "main")
    lines = [json.loads(line) for line in (main / "metrics.jsonl").read_text().splitlines()]
    for share, line in enumerate(lines):
        line["league/mean_score"] = share / 10
    (main / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    totals.write(main / "statistics.json")
    response = grown.path / "runs" / "against-main-1"
    (response / "seed-0").mkdir(parents=True)
    (response / "seed-0" / "run.json").write_text("no run of a learner")
    score = {"estimate": 0.625, "low": 0.5, "high": 0.75}
    found = {"policy": "<i>main-1", "weights_sha256": "x", "scenario": "duel", "battles": 20, "exploitability": 0.125}
    runs = [{"seed": 0, "steps": 64, "score": 0.75}, {"seed": 1, "steps": 65, "score": 0.5}]
    (response / "exploitability.json").write_text(json.dumps({**found, "score": score, "responses": runs}))
    for name, file, text in (("broken", "run.json", "{"), ("bad", "exploitability.json", '{"policy": 3}')):
        (grown.path / "runs" / name).mkdir()
        (grown.path / "runs" / name / file).write_text(text)
    page = report(grown, tmp_path)
    assert page.tables["exploitability-table"][1] == [
        "<i>main-1", "duel", "64, 65", "40", "75.0, 50.0", "62.5 [50.0, 75.0]", "+0.125 [+0.000, +0.250]"
    ]  # fmt: skip
    assert [row[0] for row in page.tables["learners-table"][1:]] == ["main"]
    assert page.lines("mean score in the league")["main"][1] == [each / 10 for each in range(len(lines))]
    assert "broken/run.json: expected JSON" in page.text and "exploitability.json: keys are missing: " in page.text
    assert "recent-opponents" in page.tables


@pytest.mark.long
def test_replays_are_of_the_newest_match_of_each_pairing(league, tmp_path):
    job = pairing(league, "novice", "trivial", CONFIG, "duel", 1)
    match = run_job(league.path, job)
    league.record(match)
    page = report(league, tmp_path, replays=3)
    (frame,) = page.frames  # the others are of matches of another engine
    assert page.text.count("no replay") == 2 and match.uuid[:8] in page.text
    (tmp_path / "frame.html").write_text(frame["srcdoc"])
    replay = read_replay(tmp_path / "frame.html")
    battle = match.match.battles[0]
    assert replay.map_hash == battle.map_hash and replay.first_difference() is None
    assert len(report(league, tmp_path, replays=1).text) < len(page.text)


def test_learners_beyond_the_most_are_left_out(league, finished_run, monkeypatch):
    for name in ("a", "b"):
        shutil.copytree(finished_run, league.path / "runs" / name)
    monkeypatch.setattr("echelon_train.report.league_runs.MOST_RUNS", 1)
    runs, problems = read_learners(league.path)
    assert [run.name for run in runs] == ["a"] and "at most 1 runs" in problems[0]


def test_an_empty_league(tmp_path):
    from echelon_train.league.store.registry import League

    page = report(League.create(tmp_path / "empty"), tmp_path)
    assert "No rating period is closed yet" in page.text and "No member has been promoted yet" in page.text
    assert page.tables["matrix"][1:] == [["1 novice", ""]]


def test_no_league_no_file(tmp_path):
    with pytest.raises(LeagueError):
        write_league_report(tmp_path / "none", tmp_path / "report.html")
    assert [*tmp_path.iterdir()] == []
