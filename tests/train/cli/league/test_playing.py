"""``echelon league play`` and ``replay``, with battles that are over after a few decisions."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image

from echelon_env.cli import main
from echelon_env.evaluate.stamps import battle_hash, stamp
from echelon_env.replays import read_replay
from echelon_train.league.playing import replay
from echelon_train.league.playing.runner import RatingRun
from echelon_train.league.store.registry import League
from train.league.leagues import CONFIG_HASH, SCRIPT_ENVIRONMENT, number_uuid, saved

COMMAND = [sys.executable, "-c", "import sys; from echelon_env.cli import main; sys.exit(main())", "league"]
PATIENCE = 300.0  # seconds for a process to start and play a match


@pytest.fixture
def league(tmp_path):
    league = League.create(tmp_path / "league")
    league.add_scripted("idle")
    league.add_scripted("random")
    return league


def test_a_rating_run_names_who_is_not_waited_for(commands, league, monkeypatch):
    found = RatingRun(3, {"novice": 0.0, "idle": 122.4, "random": 60.0}, True, ("idle",))
    monkeypatch.setattr("echelon_train.cli.league.play.rating_run", lambda *args, **options: found)
    text = commands.text("play", league.path, "--scenario", "duel")
    assert "at most 75 points, but for idle (122), which further matches would hardly reduce." in text
    assert commands.json("play", league.path)["rating_run"]["one_sided"] == ["idle"]


def test_without_a_terminal_a_rating_run_says_each_minute_what_it_does(league, tiny, monkeypatch, capsys):
    for name in ("_EVERY", "_SHARE"):
        monkeypatch.setattr(f"echelon_train.cli.league.play.{name}", 0.0)
    main(["league", "play", str(league.path), "--scenario", str(tiny), "--maps", "1", "--max-matches", "2"])
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["1 match", "2 matches"]
    assert all("greatest RD" in line and "75 wanted" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["idle"], "expected two players, or none for a rating run, got idle"),
        (["idle", "idle"], "expected two members, got 'idle' against itself"),
        (["idle", "randm"], "did you mean 'random'"),
        (["idle", "random", "--until-rd", "80"], "--until-rd: goes with a rating run"),
        (["idle", "random", "--max-matches", "8"], "--max-matches: goes with a rating run"),
        (["--until-rd", "30"], "expected a deviation above 45 points, got 30"),
        (["--scenario", "dule"], "did you mean 'duel'"),
    ],
)
def test_play_refuses_what_is_impossible(arguments, message, commands, league):
    assert message in commands.refusal("play", league.path, *arguments)
    assert league.matches() == [] and league.history() == {}


@pytest.mark.long
def test_ctrl_c_loses_nothing(league, tiny):
    arguments = ["play", str(league.path), "--scenario", str(tiny), "--maps", "1", "--until-rd", "46", "--json"]
    command = [*COMMAND, *arguments, "--processes", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=SCRIPT_ENVIRONMENT, start_new_session=True, **pipes) as process:
        deadline = time.monotonic() + PATIENCE
        while len(league.matches()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "")
    document = json.loads(out)
    assert document["interrupted"] is True
    recorded = [match.uuid for match in league.matches()]
    assert len(recorded) >= 3
    missing = set(recorded).symmetric_difference(match["uuid"] for match in document["matches"])
    assert missing <= set(recorded) and len(missing) <= 1  # the signal may come just after a match was recorded
    assert league.unrated_matches() == 0


def test_a_match_of_two(commands, league, tiny, tmp_path):
    """Its battle is the named one, else that of the last match, else what the newest policy was trained on."""
    commands.lines("add", league.path, saved(tmp_path / "policy"), "--name", "tyro")
    document = commands.json("play", league.path, "tyro", "idle", "--maps", 1)
    assert document["scenario"] == "training battles"
    assert battle_hash(league.matches()[0].config) == CONFIG_HASH
    text = commands.text("play", league.path, "idle", "novice", "--scenario", tiny, "--maps", 2)
    match = league.matches()[1]
    assert (match.match.first, match.match.second, len(match.match.battles)) == ("idle", "novice", 4)
    assert f"idle against novice in {tiny}, 2 maps from both sides: {match.match.wins} won, " in text
    assert f"match {match.uuid}" in text
    assert league.unrated_matches() == 0 and league.ratings()["idle"].deviation < 350
    document = commands.json("play", league.path, "idle", "novice", "--maps", 2)
    again = league.matches()[2]
    assert {battle.seed for battle in again.match.battles}.isdisjoint(battle.seed for battle in match.match.battles)
    (shown,) = document["matches"]
    assert (shown["uuid"], shown["scenario"], shown["maps"]) == (again.uuid, str(tiny), 2)
    assert shown["wins"] + shown["draws"] + shown["losses"] == 4
    assert shown["score"]["low"] <= shown["score"]["estimate"] <= shown["score"]["high"]
    assert document["rating_run"] is None and document["interrupted"] is False
    assert document["ratings"]["idle"]["deviation"] == league.ratings()["idle"].deviation


def test_a_rating_run(commands, league, tiny):
    battle = ["play", league.path, "--scenario", tiny, "--maps", 5, "--until-rd", 120]
    text = commands.text(*battle, "--max-matches", 1)
    assert "1 match in" in text and "Continue with the same command." in text
    document = commands.json(*battle)
    assert document["rating_run"]["reached"] is True
    assert document["rating_run"]["matches"] == len(document["matches"]) == len(league.matches()) - 1 > 0
    assert max(document["rating_run"]["deviations"].values()) <= 120
    expected = f"0 matches in {tiny}: all rating deviations are at most 120 points."
    assert commands.text(*battle) == f"{expected} Standings: echelon league standings {league.path}"


def test_replay(commands, league, tiny, tmp_path, monkeypatch):
    commands.lines("play", league.path, "idle", "random", "--scenario", tiny, "--maps", 2)
    (match,) = league.matches()
    listed = commands.lines("replay", league.path)
    assert listed[1].split()[:3] == [match.uuid[:8], "idle", "random"]
    assert listed[-1] == "the last 1 of 1 match; the score is the first's"
    assert commands.lines("replay", league.path, match.uuid[:8])[-1] == "Played again: all 4 battles end as recorded."
    first, *others = match.match.battles
    forged = dataclasses.replace(first, outcome=0 if first.outcome else 1)
    other = dataclasses.replace(match.match, battles=(forged, *others))
    league.record(dataclasses.replace(match, uuid=number_uuid(1), match=other))
    text = commands.text("replay", league.path, number_uuid(1), code=1)
    assert "Played again: 1 of 4 battles end differently." in text
    monkeypatch.setattr(replay, "stamp", lambda: {**stamp(), "engine_hash": "0" * 64})
    caution = "the rules, the engine, or what players observe have changed since"
    assert caution in commands.refusal("replay", league.path, match.uuid)
    document = commands.json("replay", league.path, match.uuid, "--force")
    assert (document["uuid"], document["same"], document["cautions"]) == (match.uuid, True, [caution])
    assert len(league.matches()) == 2


def test_a_film_of_a_battle(commands, league, tiny, tmp_path):
    commands.lines("play", league.path, "idle", "random", "--scenario", tiny, "--maps", 1)
    uuid, film = league.matches()[0].uuid, tmp_path / "battle.gif"
    document = commands.json("replay", league.path, uuid, "--gif", film, "--battle", 1)
    assert (document["battle"], document["blue"], document["red"]) == (1, "random", "idle")
    with Image.open(film) as pictures:
        assert pictures.n_frames > 2
    assert "exists already" in commands.refusal("replay", league.path, uuid, "--gif", film)
    text = commands.text("replay", league.path, uuid, "--html", tmp_path / "battle.html")
    assert text == f"{tmp_path / 'battle.html'}: battle 0 of 2, idle is blue and random is red"
    assert read_replay(tmp_path / "battle.html").players == ("idle", "random")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--force"], "expected the MATCH"),
        (["1234", "--battle", "1"], "--battle: goes with --gif and --html"),
        (["1234", "--gif", "x.gif", "--html", "x.html"], "--html: not allowed with --gif"),
        (["1234", "--html", "x.gif"], "ends in .html, got x.gif"),
        (["1234", "--gif", "x.png"], "ends in .gif, got x.png"),
        (["1234"], "0 matches have it"),
    ],
)
def test_replay_refuses_what_is_impossible(arguments, message, commands, league):
    assert message in commands.refusal("replay", league.path, *arguments)
