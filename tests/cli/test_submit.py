import json
from dataclasses import asdict, replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from cli.test_dispatch import fail
from echelon_env.cli import dispatch, evaluate, main, tournament
from echelon_env.config import plugins
from echelon_env.evaluate import freeze_suite
from echelon_env.evaluate.submission import Draw, Method, drawn_battles, read_submission, write_submission
from echelon_env.evaluate.submission.actions import pack_actions
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.storage.text import printable
from evaluate.submissions import Charge, made_player

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
    printed = submit(
        "novice.json", "--method", "Scripted novice", *about, "--about", "decisions=1e6", "--about", "note=5"
    )
    submission = read_submission("novice.json", suite=suite)
    assert printed.endswith(f"\nSubmission: novice.json ({len(submission.proofs)} battles proved)\n")
    assert submission.method == Method("Scripted novice", "A. Author", "https://example.org", 1_000_000, 1.5, note="5")
    assert submission.complete == ("duel-open", "duel")
    assert "v novice" in printed  # the level also plays against itself

    assert leaderboard("novice.json", "--suite", "small.json", "--verify", "--out", "board.md") == 0
    text = capsys.readouterr().out
    proofs = len(submission.proofs)
    assert f"\nverified: {proofs} of {proofs} battles won or drawn replayed, all as stated\n" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "| [1 Scripted novice](https://example.org) | scripted |" in (tmp_path / "board.md").read_text()
    assert leaderboard("novice.json", "--suite", "small.json", "--verify", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    (board,) = document["boards"]
    (row,) = board["sections"][0]["rows"]
    assert (row["method"], row["verified"], row["files"]) == ("Scripted novice", True, ["novice.json"])
    assert board["submissions"][0]["proofs"] == len(submission.proofs)
    assert leaderboard("novice.json", "--suite", "small.json", "--out", "board.md") == 2
    assert "exists already" in capsys.readouterr().err


def test_a_part_of_a_suite_says_what_is_complete(submit, suite, capsys):
    printed = submit("part.json", "--scenario", "duel-open")
    assert printed.endswith("proved; a part of the suite, complete: duel-open)\n")
    assert submit("less.json", "--battles", "2").endswith("proved; a part of the suite, complete: no scenario)\n")
    assert leaderboard("part.json", "less.json", "--suite", "small.json", "--scenario", "duel-open") == 0
    printed = capsys.readouterr().out
    assert "not ranked: less.json: has completed no scenario" in printed
    assert " 1 novice" in printed
    assert "NOT VERIFIED: no proof was replayed" in printed


def test_a_submission_that_does_not_verify_has_exit_code_1(submit, suite, capsys):
    submit("true.json", "--scenario", "duel-open")
    true = read_submission("true.json", suite=suite)
    key = next(key for key in true.proofs if key.opponent == "trivial")
    still = pack_actions(np.zeros((decisions_of(true, key), 1, ACTION_DIM), np.float32))  # the mech does nothing
    write_submission("false.json", replace(true, proofs={**true.proofs, key: still}))
    assert leaderboard("false.json", "--suite", "small.json", "--verify") == 1
    printed = capsys.readouterr().out
    assert f"FAILED to verify: battle {key.number} of duel-open against" in " ".join(printed.split())
    assert " 1 novice" not in printed
    assert "all as stated" not in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert leaderboard("false.json", "--suite", "small.json") == 0  # without replays no proof is checked
    capsys.readouterr()
    for nonce in map(str, range(99)):
        drawn = drawn_battles(true, Draw(1, nonce))
        code = leaderboard("false.json", "--suite", "small.json", "--verify", "--battles", "1", "--nonce", nonce)
        assert code == (1 if key in drawn else 0)
        assert f"1 battle of each scenario and file, drawn with the nonce {nonce}" in capsys.readouterr().out
        if key in drawn:
            break
    options = ["true.json", "--suite", "small.json", "--verify", "--battles", "2", "--json"]
    nonces = []
    for _ in range(2):
        assert leaderboard(*options) == 0
        nonces.append(json.loads(capsys.readouterr().out)["draw"]["nonce"])
    assert nonces[0] != nonces[1] and [len(nonce) for nonce in nonces] == [32, 32], "random ones, if none is given"


def test_files_that_are_refused_leave_the_table_of_the_others(submit, suite, tmp_path, capsys):
    """They are listed with the reason, in every form of output, and the exit code is 1."""
    submit("true.json", "--scenario", "duel-open")
    true = read_submission("true.json", suite=suite)
    write_submission("copy.json", replace(true, method=Method("Thief"), identity={"steps": 5}))
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "edited.json").write_text((tmp_path / "true.json").read_text().replace('"scripted"', '"sampled"'))
    (tmp_path / "folder").mkdir()
    (tmp_path / "\x1b.json").write_text("[]")
    files = ["bad.json", "\x1b.json", "true.json", "none.json", "copy.json", "edited.json", "folder"]
    assert leaderboard(*files, "--suite", "small.json", "--verify", "--out", "board.md") == 1
    captured = capsys.readouterr()
    reasons = {
        "bad.json": "expected JSON: Expecting property name",
        "\x1b.json": "expected a submission",
        "none.json": "No such file or directory",
        "copy.json": "has the same results as true.json",
        "edited.json": "results_hash: expected ",
        "folder": "Is a directory",
    }
    for text in (captured.out, (tmp_path / "board.md").read_text()):
        plain = " ".join(text.replace("\\", "").split())
        assert all(f"not ranked: {printable(file)}: {reason}" in plain for file, reason in reasons.items())
        assert "1 novice" in plain and "all as stated" in plain and "Thief" not in plain
    assert leaderboard(*files, "--suite", "small.json", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    (board,) = document["boards"]
    assert [each["file"] for each in board["submissions"]] == ["true.json"]
    found = {each["file"]: each["why"] for part in (document, board) for each in part["not_ranked"]}
    assert found == dict.fromkeys(reasons, "invalid") | {"copy.json": "copy"}
    assert leaderboard("none.json", "--json") == 1
    assert json.loads(capsys.readouterr().out)["boards"] == []


def decisions_of(submission, key):
    battles = next(match.battles for match in submission.matches if (match.scenario, match.second) == key[:2])
    return round(battles[key.number].seconds / submission.suite.config(key.scenario).decision_seconds)


SUBMIT = ["--suite", "echelon-eval-v3", "--submit", "x.json"]

BAD = [
    (["--submit", "x.json"], "--submit: takes --suite"),
    (["--method", "x"], "--method: takes --submit FILE, too"),
    (["--about", "note=x"], "--about: takes --submit FILE, too"),
    (["idle", *SUBMIT], "--submit: takes one player"),
    ([*SUBMIT[:-1], "no/x.json"], "no: is not a folder"),
    ([*SUBMIT[:-1], "old.json"], "old.json: exists already"),
    ([*SUBMIT, "--about", "author=x"], "did you mean 'authors'"),
    ([*SUBMIT, "--about", "decisions=1.5"], "--about: decisions: expected an integer, such as 1e6, got '1.5'"),
    ([*SUBMIT, "--about", "cpu_minutes=nan"], "cpu_minutes: expected a number"),
    ([*SUBMIT, "--about", "cpu_minutes=-1"], "--about: config key 'method"),
    ([*SUBMIT, "--about", "name=x"], "expected the name in --method NAME"),
    ([*SUBMIT, "--method", ""], "--method: method.name: expected a name"),
    ([*SUBMIT, "--statistics", "./x.json"], "--submit: expected another place than that of --statistics"),
    ([*SUBMIT, "--out", "x.json"], "--out: expected another place than that of --submit"),
    (
        [*SUBMIT[:-1], "here/x.json", "--replays", "1", "here"],
        "--replays: expected another place than that of --submit",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_a_bad_submission_is_refused_before_play(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tournament, "play_all", lambda *arguments: pytest.fail("played"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.json").write_text("precious")
    (tmp_path / "here").mkdir()
    assert message in fail(["evaluate", "random", *options], capsys)
    assert [path.read_text() for path in tmp_path.iterdir() if path.is_file()] == ["precious"]


def test_a_player_that_cannot_be_submitted_is_refused_before_play(capsys, tmp_path, monkeypatch):
    player = replace(made_player(Charge, "mine"), identity={"steps": -1})
    monkeypatch.setattr(evaluate, "make_player", lambda *arguments, **options: player)
    monkeypatch.setattr(tournament, "play_all", lambda *arguments: pytest.fail("played"))
    monkeypatch.chdir(tmp_path)
    message = fail(["evaluate", "x", "--suite", "echelon-eval-v3", "--submit", "x.json"], capsys)
    assert "--submit: mine: identity.steps: expected an integer from 0" in message
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bad.json", "bad.json"], "bad.json is named twice"),
        (["bad.json", "--scenario", "dule"], "scenarios: expected some of battle, duel, "),
        (["bad.json", "--battles", "3"], "--battles: takes --verify, too"),
        (["bad.json", "--verify", "--nonce", "x"], "--nonce: takes --battles N, too"),
        (["bad.json", "--verify", "--battles", "3", "--nonce", "a b"], "--nonce: expected 1 to 64 letters"),
        (["bad.json", "--suite", "none"], "unknown suite 'none'"),
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
