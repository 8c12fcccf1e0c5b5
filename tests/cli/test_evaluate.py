import contextlib
import errno
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cli.test_dispatch import fail, run_without_train
from echelon_env import make_config
from echelon_env.cli import evaluate as cli_evaluate
from echelon_env.cli import films, ladder, main, tournament
from echelon_env.cli.arguments import change_battle
from echelon_env.evaluate import Battle, Match, Player, baseline, evaluation_seed, load_suite, play_match, report
from echelon_env.evaluate.report import INTERVALS_FILE, MATRIX_FILE, REPORT_FILE
from echelon_env.evaluate.statistics_file import read_statistics
from echelon_env.evaluate.tables import INTERVALS, format_share, shorten
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.replays import read_replay

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


def test_statistics_are_written_into_a_file(tiny, tmp_path, capsys):
    file = tmp_path / "statistics.json"
    arguments = ["evaluate", "novice", "--opponent", "idle", "trivial", "--scenario", tiny, "duel-open"]
    arguments += ["--battles", "4", "--statistics", str(file)]
    assert printed(arguments, capsys).endswith(f"\nStatistics: {file}\n")
    statistics = read_statistics(file)
    assert (statistics.player, statistics.steps, statistics.training) == ("novice", 0, ())
    assert [each.scenario for each in statistics.evaluations] == [tiny, "duel-open"]
    for each in statistics.evaluations:
        assert {name: each.totals.results(name)["battles"] for name in each.totals.opponents} == {
            "idle": 4.0,
            "trivial": 4.0,
        }
        assert each.totals.sums("own")["mechs"] == 8.0
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err
    other = tmp_path / "other.json"
    report = printed_json([*arguments[:-1], str(other)], capsys)
    assert report["players"][0]["name"] == "novice"
    for one, two in zip(statistics.evaluations, read_statistics(other).evaluations, strict=True):
        assert one.totals.sums("own") == two.totals.sums("own")
        damage = sum(sums["damage_dealt"] for sums in one.totals.by_class("own").values() if "damage_dealt" in sums)
        matches = [match for match in report["matches"] if match["scenario"] == one.scenario]
        assert damage == pytest.approx(sum(match["classes"][0]["medium"]["damage_dealt"] for match in matches))


def test_a_folder_that_is_not_writable_is_found_before_the_battles(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for option, target in (("--statistics", "s.json"), ("--out", "report")):
        arguments = ["evaluate", "novice", "--battles", "2", option, str(tmp_path / target)]
        assert fail(arguments, capsys) == f"echelon: {tmp_path}: is not writable, nothing can be written into it\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "novice", "idle", "--statistics", "s.json"], "--statistics: takes one player"),
        (["evaluate", "novice", "--statistics", "nowhere/s.json"], "nowhere: is not a folder"),
        (["evaluate"], "PLAYER"),
        (["evaluate", "nowhere"], "nowhere: no such file or folder"),
        (["evaluate", "me@corp"], "me@corp: no such file or folder"),
        (["evaluate", "novic"], "did you mean 'novice'"),
        (["evaluate", "random", "--opponent", "novic"], "did you mean 'novice'"),
        (["evaluate", "random", "--scenario", "dule"], "did you mean 'duel'"),
        (["evaluate", "random", "--battles", "0"], "--battles"),
        (["evaluate", "random", "--battles", "5"], "expected an even number"),
        (["evaluate", "random", "random"], "random is named twice"),
        (["evaluate", "random", "novice", "--opponent", "trivial"], "--opponent"),
        (["evaluate", "random", "--opponent", "trivial", "idle", "trivial"], "--opponent: trivial is named twice"),
        (["evaluate", "random", "novice", "--film", "films"], "--film: takes one player"),
        (["evaluate", "random", "--film", "films", "--out", "films/report"], "--film: expected another folder"),
        (["ladder", "--replays", "1.5", "x"], "--replays: N: expected an integer of at least 1, got '1.5'"),
        (["evaluate", "random", "--replays", "1", "x", "--film", "x"], "--replays: expected another folder"),
        (["evaluate", "random", "--replays", "1", "x", "--film", "x/y"], "--replays: expected another folder"),
        (["evaluate", "random", "--replays", "0", "x"], "--replays: N: expected an integer of at least 1, got '0'"),
        (["evaluate", "random", "--scenario", "duel", "duel"], "expected different names"),
        (["evaluate", "random", "--seed", str(2**63)], "expected an integer below 2**63"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--scenario", "duel", "duel"], "got duel twice"),
        (["ladder", "--scenario", "duel", "duel"], "got duel twice"),
        (["evaluate", "random", "--suite", "echelon-eval"], "did you mean 'echelon-eval-v"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--opponent", "trivial"], "--opponent"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--seed", "1"], "--seed"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--battles", "202"], "has 200 in"),
        (["evaluate", "random", "--suite", "echelon-eval-v1", "--set", "dt=0.1"], "--set: not allowed with --suite"),
        (["evaluate", "random", "--set", "abilities.message=false"], "did you mean 'messages'"),
        (["evaluate", "random", "--set", "abilities.intel=no"], "--set: config key 'abilities.intel': expected bool"),
        (["evaluate", "random", "--set", "abilities=false"], "--set: config key 'abilities': expected a mapping"),
        (["evaluate", "random", "--set", "intel"], "--set: expected KEY=VALUE, got 'intel'"),
        (["evaluate", "random", "--scenario", "duel", "battle", "--set", "max_steps=0"], "duel: --set: "),
        (["evaluate", "random", "--set", "dt=0.1", "--set", "dt.x=1"], "--set: dt.x: 'dt' is a value, not a table"),
        (["ladder", "--battles", "1000"], "has 200 in"),
        (["evaluate", "random", "--eval-seeds", "x", "--suite", "echelon-eval-v1"], "not allowed with --suite"),
        (["evaluate", "random", "--eval-seeds", "x", "--battles", "2"], "--eval-seeds: not allowed with --battles"),
        (["evaluate", "random", "--eval-seeds", "x"], "seeds 'x': No such file"),
    ],
)
def test_bad_command_lines_are_reported_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fail(arguments, capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["evaluate", "random"], ["ladder"]])
def test_a_report_is_never_overwritten(command, capsys, tmp_path):
    (tmp_path / "precious").write_text("")
    assert "is not an empty folder" in fail([*command, "--out", str(tmp_path)], capsys)
    assert "is not an empty folder" in fail([*command, "--out", str(tmp_path / "precious")], capsys)


def test_results_go_into_empty_folders_that_exist(tiny, tmp_path, capsys, monkeypatch):
    """The working directory, a link, and one below them."""
    for name in ("here", "linked", "films"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "linked")
    monkeypatch.chdir(tmp_path / "here")
    inode = Path(".").stat().st_ino
    arguments = ["evaluate", "trivial", "--opponent", "idle", "--scenario", tiny, "--battles", "2"]
    battles = films._OUTCOMES
    monkeypatch.setattr(films, "_OUTCOMES", dict.fromkeys(battles, 0))  # a draw, as all battles here
    printed([*arguments, "--out", ".", "--film", "../films", "--replays", "1", "../link"], capsys)
    assert Path(".").stat().st_ino == (tmp_path / "here").stat().st_ino == inode
    assert (Path(".") / REPORT_FILE).exists()
    assert {path.suffix for path in (tmp_path / "films").iterdir()} == {".gif"}
    assert {path.suffix for path in (tmp_path / "linked").iterdir()} == {".html", ".replay"}
    assert "--replays: expected another folder" in fail(
        [*arguments, "--replays", "1", str(tmp_path / "empty"), "--out", str(tmp_path / "empty" / "report")], capsys
    )


@pytest.mark.parametrize("command", [["evaluate", "random"], ["ladder"]])
def test_a_report_that_cannot_be_written_is_refused_before_play(command, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tournament, "play_all", lambda *arguments: pytest.fail("played"))
    (tmp_path / "file").write_text("")
    assert "is not a folder" in fail([*command, "--out", str(tmp_path / "file" / "report")], capsys)
    monkeypatch.setattr(tournament.os, "access", lambda path, mode: path != tmp_path)
    assert "is not writable" in fail([*command, "--out", str(tmp_path / "new" / "report")], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_outcome_is_printed_if_the_report_cannot_be_written(tiny, tmp_path, monkeypatch, capsys):
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(report, "write_report", full)
    out = ["--out", str(tmp_path / "report")]
    assert main(["evaluate", "idle", "--scenario", tiny, "--battles", "2", *out]) == 2
    printed = capsys.readouterr()
    assert "score" in printed.out
    assert "No space left" in printed.err


def test_the_report_is_written_if_the_output_pipe_is_closed(tiny, tmp_path, monkeypatch):
    def gone(*arguments: object, **options: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(tournament, "print", gone, raising=False)
    out = tmp_path / "report"
    with contextlib.suppress(BrokenPipeError):
        main(["evaluate", "idle", "--scenario", tiny, "--battles", "2", "--out", str(out)])
    assert (out / REPORT_FILE).exists()


def test_a_policy_with_actions_that_are_not_finite_is_reported(tiny, monkeypatch, capsys):
    class Broken:
        def reset(self, mask: np.ndarray) -> None:
            pass

        def act(self, observations: np.ndarray) -> np.ndarray:
            return np.full((len(observations), ACTION_DIM), np.nan, np.float32)

    broken = Player("broken", "scripted", lambda config, noise: Broken())
    monkeypatch.setattr(
        cli_evaluate,
        "make_player",
        lambda name, seed, action_mode: baseline(name) if name == "idle" else broken,
    )
    assert main(["evaluate", "idle", "--opponent", "broken", "--scenario", tiny, "--battles", "2"]) == 0
    printed = capsys.readouterr()
    line = f"broken: {2 * 12 * ACTION_DIM:,} entries of its actions not finite, played as 0"
    assert line in printed.out.splitlines()
    assert f"echelon: {line}" in printed.err.splitlines()


def test_a_folder_without_a_checkpoint_is_reported_in_one_line(tmp_path, capsys):
    assert "neither a checkpoint" in fail(["evaluate", str(tmp_path)], capsys)
    (tmp_path / "checkpoint.json").write_text("{}")
    assert "not an Echelon checkpoint" in fail(["evaluate", str(tmp_path)], capsys)


def test_one_player_plays_the_opponent(tiny, capsys):
    arguments = ["evaluate", "random", "--opponent", "trivial", "--scenario", tiny, "--battles", "4", "--seed", "3"]
    lines = printed(arguments, capsys).splitlines()
    assert lines[0] == "random (uniform actions) against trivial, 4 battles, seed 3"
    assert lines[1] == f"in {shorten(tiny, 77)}"
    assert lines[2] == "on 2 maps"
    assert "95%" in lines[3]
    assert [line.split()[0] for line in lines[4:-1]] == ["win", "draw", "loss", "score"]
    assert lines[-1] == INTERVALS
    report = printed_json(arguments, capsys)
    (match,) = report["matches"]
    assert (match["first"], match["second"], match["scenario"]) == ("random", "trivial", tiny)
    assert report["scenarios"][tiny]["seeds"] == [evaluation_seed(3, 0), evaluation_seed(3, 1)]
    assert report["scenarios"][tiny]["config"]["max_steps"] == 12
    for line in lines[4:-1]:
        name, share = line.split(maxsplit=1)
        assert share == format_share(match[name])


def test_the_maps_of_a_file_of_seeds(tiny, tmp_path, capsys):
    seeds = [evaluation_seed(5, index) for index in (4, 0, 7)]
    file = tmp_path / "maps.txt"
    file.write_text("\n".join(map(str, seeds)))
    arguments = ["evaluate", "random", "--opponent", "trivial", "--scenario", tiny, "--eval-seeds", str(file)]
    lines = printed([*arguments, "--seed", "3"], capsys).splitlines()
    assert lines[0] == "random (uniform actions) against trivial, 6 battles, own maps, seed 3"
    assert lines[1].startswith("in /") and lines[1].endswith("/tiny.toml") and lines[2] == "on 3 maps"
    report = printed_json(arguments, capsys)
    assert report["scenarios"][tiny]["seeds"] == seeds
    assert len(report["matches"][0]["battles"]["outcome"]) == 6
    assert printed_json([*arguments, "--seed", "3"], capsys)["scenarios"] == report["scenarios"], "only of the players"


def test_one_player_plays_several_opponents(tiny, capsys):
    opponents = ["trivial", "random", "idle"]
    arguments = ["evaluate", "idle", "--opponent", *opponents, "--scenario", tiny, "--battles", "2"]
    report = printed_json(arguments, capsys)
    assert [(match["first"], match["second"]) for match in report["matches"]] == [("idle", each) for each in opponents]
    lines = printed(arguments, capsys).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("v ")] == opponents
    assert max(map(len, lines)) <= 80 and lines.count(INTERVALS) == 1
    assert not any("row against column" in line for line in lines), "the rows of opponents have the scores"


def test_a_battle_won_and_one_lost_against_each_opponent_are_filmed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("very short.toml").write_text(TINY)
    filmed = {}

    def film(path, first, second, config, *, seed, side):
        filmed[path.name] = (first.name, second.name, seed, side)
        path.write_bytes(b"")

    monkeypatch.setattr(films, "film_battle", film)
    outcomes = {"trivial": (1, -1, -1, 1), "idle": (1, 0, 1, 1), "random": (0, 0, 0, 0)}

    def match(first, second, config, seeds, *, scenario, num_threads, on_battles, totals):
        played = play_match(first, second, config, seeds, scenario=scenario)
        battles = zip(played.battles, outcomes[second.name], strict=True)
        return replace(played, battles=tuple(replace(battle, outcome=outcome) for battle, outcome in battles))

    monkeypatch.setattr(tournament, "play_match", match)
    arguments = ["evaluate", "novice", "--opponent", *outcomes, "--battles", "4", "--scenario"]
    text = printed([*arguments, "duel-open", "very short.toml", "--film", "films"], capsys)
    seeds = [evaluation_seed(0, index) for index in range(2)]
    expected = {"won-trivial": (seeds[0], 0), "lost-trivial": (seeds[0], 1), "won-idle": (seeds[0], 0)}
    assert filmed == {
        f"{name}-{scenario}.gif": ("novice", name.partition("-")[2], *battle)
        for scenario in ("duel-open", "very-short") for name, battle in expected.items()
    }  # fmt: skip
    assert {path.name for path in Path("films").iterdir()} == {*filmed}
    lines = text.splitlines()
    assert "films/lost-trivial-duel-open.gif: battle 1, novice is red" in lines
    assert "No battle lost against idle in duel-open" in lines
    assert sum("against random in very short.toml" in line for line in lines) == 2
    filmed.clear()
    assert "is not an empty folder" in fail([*arguments, "duel-open", "--film", "films"], capsys)
    printed_json([*arguments, "duel-open", "--film", "others"], capsys)
    assert {*filmed} == {f"{name}.gif" for name in expected}


def test_players_with_names_that_files_cannot_have_are_filmed_apart(tmp_path, monkeypatch):
    names = ["runs/a", "runs:a", "../..", "x" * 99]
    battle = Battle(0, 1, "", 0, 1, "elimination", 1.0, (0.0, 0.0), (1, 1))
    pairings = [(baseline("novice"), replace(baseline("idle"), name=name)) for name in names]
    matches = [Match("duel", "novice", name, ("", ""), (battle,), ({}, {})) for name in names]
    monkeypatch.setattr(films, "film_battle", lambda path, *players, **battle: path.write_bytes(b""))
    films.write_films(tmp_path / "films", matches, pairings, [tournament.Field("duel", make_config("duel"), (1,))])
    labels = ["runs-a", "runs-a-2", "player", "x" * 60]
    assert {path.name for path in (tmp_path / "films").iterdir()} == {f"won-{label}.gif" for label in labels}


def test_a_film_is_a_picture_that_moves(tiny, tmp_path, capsys):
    arguments = ["evaluate", "trivial", "--opponent", "idle", "--scenario", tiny, "--battles", "2"]
    folder = tmp_path / "films"
    lines = printed([*arguments, "--film", str(folder)], capsys).splitlines()[-2:]
    for path in folder.iterdir():
        with Image.open(path) as picture:
            assert picture.n_frames > 1
    assert len(list(folder.iterdir())) == sum(str(folder) in line for line in lines)


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
    assert "No battle" in printed([*arguments, "--replays", "1", str(tmp_path / "one")], capsys) or "lost-idle" in found


def test_the_defaults_are_a_duel_with_a_novice(capsys):
    (match,) = printed_json(["evaluate", "idle", "--battles", "2"], capsys)["matches"]
    assert (match["second"], match["scenario"]) == ("novice", "duel")


def test_changed_scenarios_are_named_and_recorded(tiny, tmp_path, capsys):
    plain = ["evaluate", "idle", "--scenario", "duel", "--battles", "2"]
    changed = [*plain, "--set", "abilities.messages=false", "--set", "abilities.intel=false", "--set", "max_steps=3"]
    lines = printed([*changed, "--out", str(tmp_path / "report")], capsys).splitlines()
    name = "duel (messages=false, intel=false, max_steps=3)"
    assert lines[1] == f"in {name}"
    report = json.loads((tmp_path / "report" / REPORT_FILE).read_text())
    config = report["scenarios"][name]["config"]
    assert config == make_config("duel", abilities={"messages": False, "intel": False}, max_steps=3).to_dict()
    assert [match["scenario"] for match in report["matches"]] == [name]
    assert [*printed_json(plain, capsys)["scenarios"]] == ["duel"]
    several = printed(["evaluate", "idle", "trivial", *changed[2:], "--scenario", "duel", "skirmish"], capsys)
    assert f"idle in {name}: % of battles" in several
    assert max(map(len, several.splitlines())) <= 80


def test_the_label_of_a_trained_battle_names_the_abilities_that_are_off():
    config = make_config("skirmish", dead_agents="persist", abilities={"intel": False, "display": False})
    name = cli_evaluate._label(config)
    assert cli_evaluate._with_changes(name, config, {}) == "skirmish (display=false, intel=false)"
    settings = {"abilities.display": "true", "catalog.weapons.laser.damage": "3"}
    changed = change_battle(config, settings)
    assert (
        cli_evaluate._with_changes(name, changed, settings) == "skirmish (intel=false, catalog.weapons.laser.damage=3)"
    )
    assert cli_evaluate._label(replace(config, max_steps=7)) == "training battles"
    assert cli_evaluate._with_changes("duel", make_config("duel"), {}) == "duel"


def test_several_players_play_each_other(tiny, capsys):
    arguments = ["evaluate", "idle", "random", "trivial", "--scenario", tiny, "duel-open", "--battles", "2"]
    report = printed_json(arguments, capsys)
    pairings = [(match["scenario"], match["first"], match["second"]) for match in report["matches"]]
    pairs = [("idle", "random"), ("idle", "trivial"), ("random", "trivial")]
    assert pairings == [(scenario, *pair) for scenario in (tiny, "duel-open") for pair in pairs]
    assert report["suite"] is None
    text = printed(arguments, capsys)
    assert f"{shorten(tiny, 41)}: mean score" in text
    assert max(map(len, text.splitlines())) <= 80


def test_several_players_skirmish_by_default(monkeypatch):
    def stop(pairings: list, fields: list[tournament.Field], num_threads: int, totals: dict) -> None:
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
    played = {(match["first"], match["second"]) for match in report["matches"]}
    expected = {(player, rival) for player in ("idle", "trivial") for rival in suite.opponents if player != rival}
    assert played == expected
    assert report["suite"] == {"name": suite.name, "hash": suite.hash, "complete": False}
    assert report["scenarios"]["duel"]["seeds"] == [suite.scenario("duel").seeds[0]]


@pytest.mark.parametrize("players", [["champion"], ["expert", "champion"]])
def test_a_player_with_the_name_of_another_opponent_of_the_suite_is_refused_before_play(players, capsys, monkeypatch):
    monkeypatch.setattr("echelon_env.cli.tournament.play_all", None)
    arguments = ["evaluate", *players, "--suite", "echelon-eval-v2", "--actions", "deterministic"]
    assert main(arguments) == 2
    assert "with deterministic actions champion is another player than the suite's opponent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["max_steps=10", "max_steps=20"], "--set: max_steps is given twice"),
        (["terrain.height=24", "terrain={size=64}"], "--set: terrain: another --set changes it, too"),
        (["max_steps=10", "battle.max_steps=20"], "--set: battle.max_steps: another --set changes it, too"),
    ],
)
def test_a_setting_is_changed_once(settings, message, capsys):
    options = [option for each in settings for option in ("--set", each)]
    assert main(["evaluate", "idle", "--scenario", "duel", "--battles", "2", *options]) == 2
    assert message in capsys.readouterr().err


def test_the_ladder_writes_replays_of_each_pairing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ladder, "BASELINES", ("idle", "random", "trivial"))
    folder = tmp_path / "replays"
    printed(["ladder", "--scenario", "duel", "--battles", "2", "--replays", "1", str(folder)], capsys)
    shown = {tuple(sorted(read_replay(path).players)) for path in folder.glob("*.html")}
    assert shown == {("random", "trivial"), ("idle", "trivial"), ("idle", "random")}
    assert all("-" in path.stem.removeprefix("lost-").removeprefix("close-1-") for path in folder.glob("*.html"))


def test_the_ladder_is_a_round_robin_on_the_suites_maps(monkeypatch, capsys):
    monkeypatch.setattr(ladder, "BASELINES", ("idle", "random", "trivial"))
    arguments = ["ladder", "--scenario", "duel", "--battles", "2"]
    report = printed_json(arguments, capsys)
    played = [(match["first"], match["second"]) for match in report["matches"]]
    assert played == [("trivial", "random"), ("trivial", "idle"), ("random", "idle")]
    suite = load_suite("echelon-eval-v2")
    assert report["suite"]["hash"] == suite.hash
    assert report["scenarios"]["duel"]["seeds"] == [suite.scenario("duel").seeds[0]]


@pytest.mark.long
def test_without_the_extra_a_checkpoint_plays(tiny, pytestconfig):
    policy = str(pytestconfig.rootpath / "src" / "echelon_env" / "champions" / "duel")
    for arguments in ((policy, "--opponent", f"policy:{policy}@fire_rate=0.5"), (policy, "idle")):
        result = run_without_train("evaluate", *arguments, "--scenario", tiny, "--battles", "2")
        assert result.returncode == 0, result.stderr
        assert "win" in result.stdout


@pytest.mark.long
def test_without_the_extra_scripted_players_play_and_untrained_reports_what_to_install(tiny, tmp_path):
    out = tmp_path / "report"
    result = run_without_train("evaluate", "idle", "trivial", "--scenario", tiny, "--battles", "2", "--out", str(out))
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith('echelon: no pictures without matplotlib: pip install "echelon-env[train]"\n')
    assert [path.name for path in out.iterdir()] == [REPORT_FILE]
    result = run_without_train("evaluate", "untrained")
    assert result.returncode == 2
    assert result.stderr == "echelon: 'evaluate' needs torch: pip install \"echelon-env[train]\"\n"
    result = run_without_train("evaluate", str(tmp_path))
    assert result.returncode == 2
    assert "neither a checkpoint" in result.stderr


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
    assert f"4 of 4 battles, 0:00:00 left: idle v novice in {tiny}"[:79].ljust(79) in shown
    assert max(map(len, shown)) < 80
    assert shown[-2:] == [" " * 79, ""]
