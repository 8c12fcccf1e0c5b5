import json
from dataclasses import asdict, replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from cli.test_dispatch import fail
from echelon_env.cli import dispatch, main, tournament
from echelon_env.config import plugins
from echelon_env.evaluate import freeze_suite
from echelon_env.evaluate.submission import Method, drawn_battles, read_submission, write_submission
from echelon_env.evaluate.submission.actions import pack_actions
from echelon_env.layout.actions import ACTION_DIM

MODULE = "echelon_env.cli.leaderboard"


def leaderboard(*arguments: str) -> int:
    """Run the command by its module."""
    return dispatch._run(EntryPoint("leaderboard", MODULE, plugins.COMMANDS), arguments)


@pytest.fixture(scope="module")
def suite():
    return freeze_suite("small", ["duel-open", "duel"], ["trivial", "novice"], 2)


@pytest.fixture
def suite_file(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.json").write_text(json.dumps(asdict(suite)))
    return "small.json"


@pytest.fixture
def submit(suite_file, capsys):
    """Evaluates the scripted level `novice` with some options, which writes a file. Returns what is printed."""

    def run(file, *options):
        arguments = ["evaluate", "novice", "--suite", suite_file, "--submit", file, *options]
        assert main(arguments) == 0
        return capsys.readouterr().out

    return run


def test_a_scripted_level_is_submitted_verified_and_ranked(submit, suite, tmp_path, capsys):
    about = ["--about", "authors=A. Author", "--about", "cpu_minutes=1.5", "--about", "url=https://example.org"]
    printed = submit("novice.json", "--method", "Scripted novice", *about, "--challenge", "a word")
    submission = read_submission("novice.json", suite=suite)
    assert printed.endswith(f"\nSubmission: novice.json ({len(submission.proofs)} battles proved)\n")
    assert submission.method == Method("Scripted novice", "A. Author", "https://example.org", cpu_minutes=1.5)
    assert (submission.challenge, submission.partial) == ("a word", False)
    assert "v novice" in printed  # the level also plays against itself

    assert leaderboard("novice.json", "--suite", "small.json", "--verify", "--out", "board.md") == 0
    text = capsys.readouterr().out
    assert f"verified novice.json: {len(submission.proofs)} battles replayed, all as stated\n" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "[1 Scripted novice](https://example.org), A. Author | 1 |" in (tmp_path / "board.md").read_text()
    assert leaderboard("novice.json", "--suite", "small.json", "--verify", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verified"] == {"novice.json": {"battles": len(submission.proofs), "failures": []}}
    assert document["boards"][0]["rows"][0]["method"] == "Scripted novice"
    assert leaderboard("novice.json", "--suite", "small.json", "--out", "board.md") == 2
    assert "exists already" in capsys.readouterr().err


def test_a_part_of_a_suite_says_what_is_complete(submit, suite, capsys):
    printed = submit("part.json", "--scenario", "duel-open")
    assert printed.endswith("proved; a part of the suite, complete: duel-open)\n")
    assert submit("less.json", "--battles", "2").endswith("proved; a part of the suite, complete: no scenario)\n")
    assert leaderboard("part.json", "less.json", "--suite", "small.json", "--scenario", "duel-open") == 0
    printed = capsys.readouterr().out
    assert "not ranked: less.json has completed no scenario only" in printed
    assert " 1 novice" in printed


def test_a_submission_that_does_not_verify_has_exit_code_1(submit, suite, capsys):
    submit("true.json", "--scenario", "duel-open")
    true = read_submission("true.json", suite=suite)
    key = next(key for key in true.proofs if key.opponent == "trivial")
    still = pack_actions(np.zeros((decisions_of(true, key), 1, ACTION_DIM), np.float32))  # the mech does nothing
    write_submission("false.json", replace(true, proofs={**true.proofs, key: still}))
    assert leaderboard("false.json", "--suite", "small.json", "--verify") == 1
    printed = capsys.readouterr().out
    assert f"FAILED false.json: battle {key.number} of duel-open against trivial: stated won by " in printed
    assert "verified" not in printed
    assert leaderboard("false.json", "--suite", "small.json", "--verify", "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["verified"]["false.json"]["failures"]) == 1
    assert leaderboard("false.json", "--suite", "small.json") == 0  # without replays only the draw is checked


def test_other_rules_cannot_be_verified(submit, suite, capsys):
    submit("true.json", "--scenario", "duel-open")
    true = read_submission("true.json", suite=suite)
    other = replace(true, stamp={**true.stamp, "opponents_hash": "0" * 64}, proofs={})
    write_submission("other.json", replace(other, proofs={key: true.proofs[key] for key in drawn_battles(other)}))
    assert leaderboard("true.json", "other.json", "--suite", "small.json", "--verify") == 1
    printed = capsys.readouterr().out
    assert "verified true.json: " in printed
    assert "FAILED other.json: it was played with other opponents: opponents_hash 000000000000" in printed
    assert "played with echelon-env " in printed


def decisions_of(submission, key):
    battles = next(match.battles for match in submission.matches if (match.scenario, match.second) == key[:2])
    return round(battles[key.number].seconds / submission.suite.config(key.scenario).decision_seconds)


BAD = [
    (["--submit", "x.json"], "--submit: takes --suite"),
    (["--method", "x"], "--method: takes --submit FILE, too"),
    (["--about", "note=x"], "--about: takes --submit FILE, too"),
    (["--challenge", "x"], "--challenge: takes --submit FILE, too"),
    (["idle", "--suite", "echelon-eval-v1", "--submit", "x.json"], "--submit: takes one player"),
    (["--suite", "echelon-eval-v1", "--submit", "no/x.json"], "no: is not a folder"),
    (["--suite", "echelon-eval-v1", "--submit", "old.json"], "old.json: exists already"),
    (["--suite", "echelon-eval-v1", "--submit", "x.json", "--about", "author=x"], "did you mean 'authors'"),
    (
        ["--suite", "echelon-eval-v1", "--submit", "x.json", "--about", "note"],
        "--about: expected KEY=VALUE, got",
    ),
    (
        ["--suite", "echelon-eval-v1", "--submit", "x.json", "--about", "decisions=x"],
        "'method.decisions': expected",
    ),
    (["--suite", "echelon-eval-v1", "--submit", "x.json", "--about", "url=x"], "method.url: expected an address"),
    (["--suite", "echelon-eval-v1", "--submit", "x.json", "--method", "x" * 61], "method.name: expected a printable"),
    (["--suite", "echelon-eval-v1", "--submit", "x.json", "--challenge", "\n"], "--challenge: expected a printable"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_a_bad_submission_is_refused_before_play(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tournament, "play_all", lambda *arguments: pytest.fail("played"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.json").write_text("precious")
    assert message in fail(["evaluate", "random", *options], capsys)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.json"], "none.json: No such file"),
        (["bad.json"], "bad.json: expected JSON"),
        (["bad.json", "bad.json", "--suite", "none"], "unknown suite 'none'"),
        (["bad.json", "--out", "no/board.md"], "no: is not a folder"),
        (["bad.json", "--scenario", "duel", "duel"], "got duel twice"),
    ],
)
def test_a_bad_leaderboard_is_refused_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("")
    assert leaderboard(*arguments) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert message in captured.err
