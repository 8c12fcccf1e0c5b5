import json
import sys

import pytest

from echelon_env import make_config
from echelon_env.cli import ladder, main, tournament
from echelon_env.evaluate import evaluation_seed, load_suite
from echelon_env.evaluate.report import INTERVALS_FILE, MATRIX_FILE, REPORT_FILE
from test_cli import fail, run_without_train

TINY = """
description = "A duel that is over after a few decisions."
blue = ["medium"]
red = ["medium"]
max_steps = 12
[terrain]
size = 48
"""


@pytest.fixture
def tiny(tmp_path):
    """The file of a scenario."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return str(path)


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def printed_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(printed([*arguments, "--json"], capsys))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "PLAYER"),
        (["evaluate", "nowhere"], "nowhere: no such file or folder"),
        (["evaluate", "novic"], "did you mean 'novice'"),
        (["evaluate", "untraind"], "did you mean 'untrained'"),
        (["evaluate", "random", "--opponent", "novic"], "did you mean 'novice'"),
        (["evaluate", "random", "--scenario", "dule"], "did you mean 'duel'"),
        (["evaluate", "random", "--battles", "none"], "--battles"),
        (["evaluate", "random", "--battles", "0"], "--battles"),
        (["evaluate", "random", "--battles", "5"], "expected an even number"),
        (["evaluate", "random", "random"], "random is named twice"),
        (["evaluate", "random", "novice", "--opponent", "trivial"], "--opponent"),
        (["evaluate", "random", "--scenario", "duel", "duel"], "expected different names"),
        (["evaluate", "random", "--suite", "echelon-eval"], "did you mean 'echelon-eval-v1'"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--opponent", "trivial"], "--opponent"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--seed", "1"], "--seed"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--scenario", "dule"], "did you mean 'duel'"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--battles", "202"], "has 200 in"),
        (["ladder", "--scenario", "dule"], "did you mean 'duel'"),
        (["ladder", "--battles", "3"], "expected an even number"),
        (["ladder", "--battles", "1000"], "has 200 in"),
    ],
)
def test_bad_command_lines_say_why_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fail(arguments, capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["evaluate", "random"], ["ladder"]])
def test_a_report_is_never_overwritten(command, capsys, tmp_path):
    (tmp_path / "precious").write_text("")
    assert "is not an empty folder" in fail([*command, "--out", str(tmp_path)], capsys)
    assert "is not an empty folder" in fail([*command, "--out", str(tmp_path / "precious")], capsys)


def test_a_folder_without_a_checkpoint_is_one_line(tmp_path, capsys):
    assert "neither a checkpoint" in fail(["evaluate", str(tmp_path)], capsys)
    (tmp_path / "checkpoint.json").write_text("{}")
    assert "not an Echelon checkpoint" in fail(["evaluate", str(tmp_path)], capsys)


def test_one_player_meets_the_opponent(tiny, capsys):
    arguments = ["evaluate", "random", "--opponent", "trivial", "--scenario", tiny, "--battles", "4", "--seed", "3"]
    lines = printed(arguments, capsys).splitlines()
    assert lines[0] == "random (uniform actions) against trivial, 4 battles, seed 3"
    assert lines[1] == "on 2 maps"
    assert "95 %" in lines[2]
    assert [line.split()[0] for line in lines[3:]] == ["win", "draw", "loss"]
    report = printed_json(arguments, capsys)
    (match,) = report["matches"]
    assert (match["first"], match["second"], match["scenario"]) == ("random", "trivial", "tiny")
    assert report["scenarios"]["tiny"]["seeds"] == [evaluation_seed(3, 0), evaluation_seed(3, 1)]
    assert report["scenarios"]["tiny"]["config"]["max_steps"] == 12
    shares = dict(line.split()[:2] for line in lines[3:])
    assert all(shares[name] == f"{match[name]['estimate']:.1%}" for name in shares)


def test_the_defaults_are_a_duel_with_a_novice(capsys):
    (match,) = printed_json(["evaluate", "idle", "--battles", "2"], capsys)["matches"]
    assert (match["second"], match["scenario"]) == ("novice", "duel")


def test_several_players_meet_one_another(tiny, capsys):
    arguments = ["evaluate", "idle", "random", "trivial", "--scenario", tiny, "duel-open", "--battles", "2"]
    report = printed_json(arguments, capsys)
    pairings = [(match["scenario"], match["first"], match["second"]) for match in report["matches"]]
    pairs = [("idle", "random"), ("idle", "trivial"), ("random", "trivial")]
    assert pairings == [(scenario, *pair) for scenario in ("tiny", "duel-open") for pair in pairs]
    assert report["suite"] is None
    text = printed(arguments, capsys)
    assert "tiny: mean score" in text
    assert max(map(len, text.splitlines())) <= 80


def test_several_players_skirmish_by_default(monkeypatch):
    def stop(pairings: list, fields: list[tournament.Field], num_threads: int) -> None:
        (field,) = fields
        assert (field.name, field.config, len(field.seeds)) == ("skirmish", make_config("skirmish"), 100)
        raise KeyboardInterrupt

    monkeypatch.setattr(tournament, "play_all", stop)
    assert main(["evaluate", "idle", "random"]) == 130


def test_a_suite_is_played_against_its_opponents(capsys, tmp_path):
    suite = load_suite("echelon-eval-v1")
    out = tmp_path / "report"
    arguments = ["evaluate", "idle", "trivial", "--suite", suite.name, "--scenario", "duel", "--battles", "2"]
    text = printed([*arguments, "--out", str(out)], capsys)
    assert f"suite {suite.name} ({suite.hash[:12]}), a part of it" in text
    assert max(len(line) for line in text.splitlines() if str(out) not in line) <= 80
    assert {path.name for path in out.iterdir()} == {REPORT_FILE, MATRIX_FILE, INTERVALS_FILE}
    report = json.loads((out / REPORT_FILE).read_text())
    met = {(match["first"], match["second"]) for match in report["matches"]}
    expected = {(player, rival) for player in ("idle", "trivial") for rival in suite.opponents if player != rival}
    assert met == expected
    assert report["suite"] == {"name": suite.name, "hash": suite.hash, "complete": False}
    assert report["scenarios"]["duel"]["seeds"] == [suite.scenario("duel").seeds[0]]


def test_the_ladder_is_a_round_robin_on_the_suites_maps(monkeypatch, capsys):
    monkeypatch.setattr(ladder, "BASELINES", ("idle", "random", "trivial"))
    arguments = ["ladder", "--scenario", "duel", "--battles", "2"]
    report = printed_json(arguments, capsys)
    met = [(match["first"], match["second"]) for match in report["matches"]]
    assert met == [("trivial", "random"), ("trivial", "idle"), ("random", "idle")]
    suite = load_suite("echelon-eval-v1")
    assert report["suite"]["hash"] == suite.hash
    assert report["scenarios"]["duel"]["seeds"] == [suite.scenario("duel").seeds[0]]


def test_without_the_extra_scripted_players_meet_and_networks_say_what_to_install(tiny, tmp_path):
    out = tmp_path / "report"
    result = run_without_train("evaluate", "idle", "trivial", "--scenario", tiny, "--battles", "2", "--out", str(out))
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith('echelon: no pictures without matplotlib: pip install "echelon-env[train]"\n')
    assert [path.name for path in out.iterdir()] == [REPORT_FILE]
    for name in ("untrained", str(tmp_path)):
        result = run_without_train("evaluate", name)
        assert result.returncode == 2
        assert 'pip install "echelon-env[train]"' in result.stderr
        assert "Traceback" not in result.stderr


def test_ctrl_c_leaves_nothing(tiny, tmp_path, monkeypatch, capsys):
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tournament, "play_match", interrupt)
    out = tmp_path / "new"
    assert main(["evaluate", "idle", "--scenario", tiny, "--out", str(out)]) == 130
    assert capsys.readouterr().err == "echelon: interrupted\n"
    assert not out.exists()


def test_progress_is_shown_on_a_terminal_only(tiny, monkeypatch, capsys):
    arguments = ["evaluate", "idle", "--scenario", tiny, "--battles", "4"]
    assert main(arguments) == 0
    assert "battles" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(arguments) == 0
    shown = capsys.readouterr().err.split("\r")
    assert any(line.startswith("4 of 4 battles, 0:00:00 left: idle v novice in tiny") for line in shown)
    assert max(map(len, shown)) < 80
    assert shown[-2:] == [" " * 79, ""]
