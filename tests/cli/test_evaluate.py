import contextlib
import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cli.test_dispatch import fail, run_without_train
from echelon_env import make_config
from echelon_env.cli import evaluate, main, record, tournament
from echelon_env.evaluate import Battle, Match, baseline, evaluation_seed
from echelon_env.evaluate.statistics_file import read_statistics
from echelon_env.replays import ReplayError, read_replay
from support.tiny import TINY


@pytest.fixture
def tiny(tmp_path):
    """The file of a scenario."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return str(path)


def battle(number: int, outcome: int) -> Battle:
    return Battle(number, number // 2, "", number % 2, outcome, "elimination", 1.0, (0.0, 0.0), (1, 1))


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def printed_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(printed([*arguments, "--json"], capsys))


def test_statistics_are_written_into_a_file(tiny, tmp_path, capsys):
    file = tmp_path / "statistics.json"
    arguments = ["evaluate", "novice", "--opponent", "idle", "trivial", "--scenario", tiny, "duel-open"]
    arguments += ["--battles", "2", "--statistics", str(file)]
    report = printed_json(arguments, capsys)
    statistics = read_statistics(file)
    assert (statistics.player, statistics.steps, statistics.training) == ("novice", 0, ())
    assert [each.scenario for each in statistics.evaluations] == [tiny, "duel-open"]
    for each in statistics.evaluations:
        battles = {name: each.totals.results(name)["battles"] for name in each.totals.opponents}
        assert battles == {"idle": 2.0, "trivial": 2.0}
        damage = sum(sums.get("damage_dealt", 0.0) for sums in each.totals.by_class("own").values())
        matches = [match for match in report["matches"] if match["scenario"] == each.scenario]
        assert damage == pytest.approx(sum(match["classes"][0]["medium"]["damage_dealt"] for match in matches))
    assert "exists already" in fail(arguments, capsys)


def test_partners_play_beside_the_player(tmp_path, capsys):
    arguments = ["evaluate", "novice", "--partners", "idle", "trivial", "--opponent", "trivial", "expert"]
    arguments += ["--scenario", "trio", "--battles", "2", "--set", "max_steps=40"]
    report = printed_json([*arguments, "--replays", "1", str(tmp_path / "replays")], capsys)
    teams = {(match["first"], match["second"]) for match in report["matches"]}
    names = ["novice", "novice+idle", "idle+novice", "idle", "novice+trivial", "trivial+novice", "trivial"]
    assert {frozenset(pair) for pair in teams} == {
        frozenset((name, opponent)) for name in names for opponent in ("trivial", "expert")
    }
    assert [(row["opponent"], row["partner"]) for row in report["partners"]] == [
        (opponent, partner) for opponent in ("trivial", "expert") for partner in ("idle", "trivial")
    ]
    assert len([*(tmp_path / "replays").glob("*.html")]) == len(teams)
    lines = printed(arguments, capsys).splitlines()
    assert len([line for line in lines if line.startswith("idle   ")]) == 2
    assert not any("+" in line for line in lines)  # mixed teams are no rows of their own


SUITE = ["--suite", "echelon-eval-v3"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "PLAYER"),
        (["nowhere"], "nowhere: no such file or folder"),
        (["me@corp"], "me@corp: no such file or folder"),
        (["random", "--opponent", "novic"], "did you mean 'novice'"),
        (["random", "random"], "random is named twice"),
        (["random", "novice", "--opponent", "trivial"], "--opponent"),
        (["random", "--opponent", "trivial", "idle", "trivial"], "--opponent: trivial is named twice"),
        (["random", "--scenario", "dule"], "did you mean 'duel'"),
        (["random", "--scenario", "duel", "duel"], "expected different names"),
        (["random", "--battles", "0"], "--battles"),
        (["random", "--battles", "5"], "expected an even number"),
        (["random", "--seed", str(2**63)], "expected an integer below 2**63"),
        (["random", "--eval-seeds", "x"], "seeds 'x': No such file"),
        (["random", "--eval-seeds", "x", "--battles", "2"], "--eval-seeds: not allowed with --battles"),
        (["random", "--eval-seeds", "x", *SUITE], "not allowed with --suite"),
        (["random", "--suite", "echelon-eval"], "did you mean 'echelon-eval-v"),
        (["random", *SUITE, "--opponent", "trivial"], "--opponent"),
        (["random", *SUITE, "--seed", "1"], "--seed"),
        (["random", *SUITE, "--battles", "202"], "has 200 in"),
        (["random", *SUITE, "--set", "dt=0.1"], "--set: not allowed with --suite"),
        (["random", "--set", "abilities.message=false"], "did you mean 'messages'"),
        (["random", "--set", "abilities.intel=no"], "--set: config key 'abilities.intel': expected bool"),
        (["random", "--set", "abilities=false"], "--set: config key 'abilities': expected a mapping"),
        (["random", "--scenario", "duel", "battle", "--set", "max_steps=0"], "duel: --set: "),
        (["random", "--set", "dt=0.1", "--set", "dt.x=1"], "--set: dt.x: 'dt' is a value, not a table"),
        (["random", "--set", "dt=0.1", "--set", "battle.dt=0.2"], "battle.dt: another --set changes it, too"),
        (["random", "--set", "zone.radius=9", "--set", "zone={}"], "zone: another --set changes it, too"),
        (["random", "novice", "--statistics", "s.json"], "--statistics: takes one player"),
        (["random", "novice", "--partners", "idle"], "--partners: takes one player"),
        (["random", "--partners", "idle", "random"], "random is named twice"),
        (["random", "--partners", "idle", "idle"], "--partners: idle is named twice"),
        (["random", "--partners", "idle", "--statistics", "s.json"], "--statistics: not allowed with --partners"),
        (["random", "--partners", "idle", *SUITE, "--submit", "s.json"], "--submit: not allowed with --partners"),
        (
            ["random", "--partners", "idle", "--scenario", "duel"],
            "duel: random+idle: expected a team of at least 2 mechs",
        ),
        (["idle", "--partners", "novice+trivial"], "expected single players, got the team novice+trivial"),
        (["expert@fire_rate=0.50", "--partners", "expert@fire_rate=0.5"], "expert@fire_rate=0.5 is named twice"),
        (["random+"], "random+: no such file or folder"),
        (["random+novic"], "did you mean 'novice'"),
        (["random", "--statistics", "nowhere/s.json"], "nowhere: is not a folder"),
        (["random", "--replays", "1", "x", "--out", "x"], "--replays: expected another place"),
        (["random", "--statistics", "x", "--out", "x"], "--out: expected another place"),
        (["random", "--replays", "0", "x"], "--replays: N: expected an integer of at least 1, got '0'"),
        (["random", "--replays", "1", "full"], "is not an empty folder"),
        (["random", "--out", "full/precious"], "exists already"),
        (["random", "--out", "full/precious/report"], "is not a folder"),
        (["full"], "neither a checkpoint"),
        (
            ["champion", "--suite", "echelon-eval-v3", "--actions", "deterministic"],
            "champion is another player than the suite",
        ),
    ],
)
def test_bad_command_lines_are_reported_in_one_line_before_play(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tournament, "play_all", lambda *arguments: pytest.fail("played"))
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/precious").write_text("")
    assert message in fail(["evaluate", *options], capsys)
    assert sorted(map(str, tmp_path.rglob("*"))) == [str(tmp_path / "full"), str(tmp_path / "full" / "precious")]


@pytest.mark.parametrize("option", [["--out", "report.json"], ["--replays", "1", "replays"]])
def test_folders_that_are_not_writable_are_refused_before_play(option, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "is not writable, nothing can be written into it" in fail(["evaluate", "random", *option], capsys)
    assert list(tmp_path.iterdir()) == []


def test_replays_go_into_empty_folders_that_exist(tiny, tmp_path, capsys, monkeypatch):
    """A link, and the working directory, which also has another file after them."""
    for name in ("here", "linked"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "linked")
    monkeypatch.chdir(tmp_path / "here")
    inode = Path(".").stat().st_ino
    arguments = ["evaluate", "trivial", "--opponent", "idle", "--scenario", tiny, "--battles", "2"]
    printed([*arguments, "--replays", "1", "../link"], capsys)
    printed([*arguments, "--replays", "1", "."], capsys)
    assert Path(".").stat().st_ino == (tmp_path / "here").stat().st_ino == inode
    for folder in (tmp_path / "linked", Path(".")):
        assert {path.suffix for path in folder.iterdir()} == {".html", ".replay"}


def test_the_replays_of_players_with_any_names(tmp_path, monkeypatch):
    """Of names that files cannot have, too; a page that would be too large is left out."""
    recorded = {}

    def page(path, replay):
        recorded[path.stem] = replay
        if "won" in path.stem:
            raise ReplayError("too large")

    monkeypatch.setattr(record, "record_battle", lambda one, two, config, *, seed, side: (two.name, seed, side))
    monkeypatch.setattr(record, "write_replay", lambda path, replay: None)
    monkeypatch.setattr(record, "write_page", page)
    outcomes = {"trivial": (1, -1, -1), "runs/a": (1, 0, 1), "runs:a": (1, 0, 0), "../..": (0, -1, 0), "x" * 99: (0,)}
    pairings = [(baseline("novice"), replace(baseline("idle"), name=name)) for name in outcomes]
    fields = [tournament.Field(name, make_config("duel"), (1, 2)) for name in ("duel", "very short.toml")]
    matches = [
        Match(field.name, "novice", name, ("", ""), tuple(map(battle, range(3), each)), ({}, {}))
        for field in fields
        for name, each in outcomes.items()
    ]
    lines = record.write(tmp_path / "replays", 2, matches, pairings, fields)
    expected = {"won-trivial-{}": ("trivial", 0, 0), "lost-trivial-{}": ("trivial", 0, 1)}
    expected |= {"won-runs-a-{}": ("runs/a", 0, 0), "close-1-runs-a-{}": ("runs/a", 0, 1)}
    expected |= {"won-runs-a-{}-2": ("runs:a", 0, 0), "close-1-runs-a-{}-2": ("runs:a", 0, 1)}
    expected |= {"lost-player-{}": ("../..", 0, 1), "close-1-player-{}": ("../..", 0, 0)}
    expected |= {f"close-1-{'x' * 60}-{{}}": ("x" * 99, 0, 0)}
    assert recorded == {name.format(field): each for field in ("duel", "very-short") for name, each in expected.items()}
    assert f"{tmp_path / 'replays' / 'lost-trivial-duel.html'}: battle 1, novice is red" in lines
    assert f"{tmp_path / 'replays' / 'won-trivial-duel.replay'}: battle 0, novice is blue" in lines
    assert "No battle lost against runs/a in duel" in lines


def test_replays_of_a_lost_a_won_and_close_battles(tiny, tmp_path, capsys):
    arguments = ["evaluate", "trivial", "--opponent", "idle", "--scenario", tiny, "--battles", "6"]
    report = printed_json([*arguments, "--replays", "4", str(tmp_path / "replays")], capsys)
    outcomes = report["matches"][0]["battles"]["outcome"]
    found = sorted(path.stem for path in (tmp_path / "replays").glob("*.replay"))
    ends = [f"{kind}-idle" for kind, value in (("lost", -1), ("won", 1)) if value in outcomes]
    assert found == sorted([*(f"close-{number}-idle" for number in range(1, 5 - len(ends))), *ends])
    for name in found:
        replay = read_replay(tmp_path / "replays" / f"{name}.html")
        assert {*replay.players} == {"trivial", "idle"} and replay.first_difference() is None


def test_the_maps_of_a_file_of_seeds(tiny, tmp_path, capsys):
    seeds = [evaluation_seed(5, index) for index in (4, 0, 7)]
    file = tmp_path / "maps.txt"
    file.write_text("\n".join(map(str, seeds)))
    arguments = ["evaluate", "random", "--opponent", "trivial", "--scenario", tiny, "--eval-seeds", str(file)]
    report = printed_json(arguments, capsys)
    assert report["scenarios"][tiny]["seeds"] == seeds
    assert len(report["matches"][0]["battles"]["outcome"]) == 6
    assert "against trivial, 6 battles, own maps, seed 3\n" in printed([*arguments, "--seed", "3"], capsys)


def test_the_defaults(monkeypatch, capsys):
    """One player fights a novice in a duel, several skirmish."""
    played = []

    def stop(pairings, fields, num_threads, totals):
        played.append(([(one.name, two.name) for one, two in pairings], fields))
        raise KeyboardInterrupt

    monkeypatch.setattr(tournament, "play_all", stop)
    for arguments in (["evaluate", "idle"], ["evaluate", "idle", "random"]):
        assert main(arguments) == 130
    duel, skirmish = played
    for (_, (field,)), name in ((duel, "duel"), (skirmish, "skirmish")):
        assert (field.name, field.config, len(field.seeds)) == (name, make_config(name), 100)
    assert duel[0] == [("idle", "novice")]


def test_a_report_or_the_outcome_is_kept_if_the_other_cannot_be_written(tiny, tmp_path, monkeypatch, capsys):
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def gone(*arguments: object, **options: object) -> None:
        raise BrokenPipeError

    arguments = ["evaluate", "idle", "--scenario", tiny, "--battles", "2", "--out", str(tmp_path / "report.json")]
    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "write_bytes", full)
        assert main(arguments) == 2
    shown = capsys.readouterr()
    assert "score" in shown.out and "No space left" in shown.err
    monkeypatch.setattr(evaluate, "print", gone, raising=False)
    with contextlib.suppress(OSError):
        main(arguments)
    assert json.loads((tmp_path / "report.json").read_text())["opponents"] == ["novice"]


@pytest.mark.long
def test_without_the_extra(tiny, tmp_path, pytestconfig):
    """Scripted players and checkpoints play, and other things report what to install."""
    policy, out = str(pytestconfig.rootpath / "src" / "echelon_env" / "champions" / "duel"), tmp_path / "report.json"
    options = ["--scenario", tiny, "--battles", "2", "--out", str(out)]
    result = run_without_train("evaluate", policy, "--opponent", f"policy:{policy}@fire_rate=0.5", "idle", *options)
    assert result.returncode == 0, result.stderr
    assert out.exists()
    result = run_without_train("evaluate", "untrained")
    assert result.returncode == 2
    assert result.stderr == "echelon: 'evaluate' needs torch: pip install \"echelon-env[train]\"\n"


def test_progress_is_shown_on_a_terminal_only(tiny, monkeypatch, capsys):
    arguments = ["evaluate", "idle", "--scenario", tiny, "--battles", "4"]
    assert main(arguments) == 0
    assert "battles" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(arguments) == 0
    shown = capsys.readouterr().err.split("\r")
    assert f"4 of 4 battles, 0:00:00 left: idle v novice in {tiny}"[:79].ljust(79) in shown
    assert max(map(len, shown)) < 80
    assert shown[-2:] == [" " * 79, ""]
