"""``echelon league play`` and ``replay``, with battles that are over after a few decisions."""

import dataclasses
import json
import os
import pty
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
from echelon_train.league.store import records
from echelon_train.league.store.registry import League
from train.league.leagues import CONFIG, CONFIG_HASH, SCRIPT_ENVIRONMENT, number_uuid, played, saved

COMMAND = [sys.executable, "-c", "import sys; from echelon_env.cli import main; sys.exit(main())", "league"]
PATIENCE = 300.0  # seconds for a process to start and play a match


@pytest.fixture
def league(tmp_path):
    league = League.create(tmp_path / "league")
    league.add_scripted("idle")
    league.add_scripted("random")
    return league


def test_a_match_of_two(commands, league, tiny):
    text = commands.text("play", league.path, "idle", "novice", "--scenario", tiny, "--maps", 3)
    (match,) = league.matches()
    assert (match.match.first, match.match.second, len(match.match.battles)) == ("idle", "novice", 6)
    assert f"idle against novice in {tiny}, 3 maps from both sides: {match.match.wins} won, " in text
    assert f"match {match.uuid}" in text
    assert league.unrated_matches() == 0 and league.ratings()["idle"].deviation < 350


def test_a_match_of_two_never_repeats_a_map(commands, league, tiny):
    arguments = ["play", league.path, "idle", "random", "--scenario", tiny, "--maps", 2]
    documents = [commands.json(*arguments) for _ in range(2)]
    uuids = [match["uuid"] for document in documents for match in document["matches"]]
    assert uuids == [match.uuid for match in league.matches()]
    seeds = [battle.seed for match in league.matches() for battle in match.match.battles[::2]]
    assert len(set(seeds)) == 4
    (match,) = documents[0]["matches"]
    assert (match["first"], match["second"], match["scenario"], match["maps"]) == ("idle", "random", str(tiny), 2)
    assert match["wins"] + match["draws"] + match["losses"] == 4
    assert match["score"]["low"] <= match["score"]["estimate"] <= match["score"]["high"]
    assert documents[1]["rating_run"] is None and documents[1]["interrupted"] is False
    assert documents[1]["ratings"]["idle"]["deviation"] == league.ratings()["idle"].deviation


def test_a_rating_run_until_all_is_known(commands, league, tiny):
    arguments = ["play", league.path, "--scenario", tiny, "--maps", 5, "--until-rd", 120]
    document = commands.json(*arguments)
    assert document["rating_run"]["reached"] is True
    assert document["rating_run"]["matches"] == len(document["matches"]) == len(league.matches()) > 0
    assert max(document["rating_run"]["deviations"].values()) <= 120
    expected = f"0 matches in {tiny}: all rating deviations are at most 120 points."
    assert commands.text(*arguments) == f"{expected} Standings: echelon league standings {league.path}"


def test_a_rating_run_to_its_last_match_continues(commands, league, tiny):
    arguments = ["play", league.path, "--scenario", tiny, "--maps", 1, "--max-matches", 2]
    text = commands.text(*arguments)
    assert "2 matches in" in text and "Continue with the same command." in text
    assert commands.json(*arguments)["rating_run"]["reached"] is False
    assert len(league.matches()) == 4 and league.unrated_matches() == 0


def test_the_battle_is_what_the_newest_policy_was_trained_on(commands, league, tmp_path):
    commands.lines("add", league.path, saved(tmp_path / "policy"), "--name", "tyro")
    document = commands.json("play", league.path, "tyro", "idle", "--maps", 1)
    assert document["scenario"] == "training battles"
    (match,) = league.matches()
    assert battle_hash(match.config) == CONFIG_HASH


def test_the_battle_is_that_of_the_last_match(commands, league, tmp_path):
    commands.lines("play", league.path, "idle", "random", "--scenario", "duel-open", "--maps", 1)
    commands.lines("add", league.path, saved(tmp_path / "policy"), "--name", "tyro")
    assert commands.json("play", league.path, "idle", "random", "--maps", 1)["scenario"] == "duel-open"


def test_a_rating_run_names_who_is_not_waited_for(commands, league, monkeypatch):
    found = RatingRun(3, {"novice": 0.0, "idle": 122.4, "random": 60.0}, True, ("idle",))
    monkeypatch.setattr("echelon_train.cli.league.play.rating_run", lambda *args, **options: found)
    text = commands.text("play", league.path, "--scenario", "duel")
    assert (
        "all rating deviations are at most 75 points, but for idle (122), which further matches would hardly reduce."
        in text
    )
    assert commands.json("play", league.path)["rating_run"]["one_sided"] == ["idle"]


def test_without_a_terminal_a_rating_run_says_each_minute_what_it_does(league, tiny, monkeypatch, capsys):
    for name in ("_EVERY", "_SHARE"):
        monkeypatch.setattr(f"echelon_train.cli.league.play.{name}", 0.0)
    main(["league", "play", str(league.path), "--scenario", str(tiny), "--maps", "1", "--max-matches", "2"])
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["1 match", "2 matches"]
    assert all("greatest RD" in line and "75 wanted" in line for line in lines)


def test_processes_play_as_well(commands, league, tiny):
    arguments = ["play", league.path, "--scenario", tiny, "--maps", 1, "--max-matches", 2, "--processes", 2]
    document = commands.json(*arguments)
    assert len(document["matches"]) == len(league.matches()) == 2
    assert all(str(os.getpid()) not in match["worker"] for match in document["matches"])


def test_a_cluster_plays_as_well(commands, league, tiny, monkeypatch):
    asked = []
    monkeypatch.setattr("echelon_train.cli.league.play.RayExecutor", lambda: asked.append(1) or FakeCluster())
    commands.lines("play", league.path, "idle", "random", "--scenario", tiny, "--maps", 1, "--ray")
    assert asked == [1] and len(league.matches()) == 1


class FakeCluster:
    """Returns matches without playing them."""

    def run(self, path, jobs):
        for job in jobs:
            match = played(job.first, job.second).match
            yield records.PlayedMatch(job.uuid, match, CONFIG)

    def close(self):
        pass


def test_without_ray_a_line_says_what_to_install(commands, league, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'echelon-env[ray]'" in commands.refusal("play", league.path, "--scenario", tiny, "--ray")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["idle"], "expected two players, or none for a rating run, got idle"),
        (["idle", "random", "novice"], "expected two players, or none for a rating run, got idle, random, novice"),
        (["idle", "idle"], "expected two members, got 'idle' against itself"),
        (["idle", "randm"], "did you mean 'random'"),
        (["idle", "random", "--until-rd", "80"], "--until-rd: goes with a rating run"),
        (["idle", "random", "--max-matches", "8"], "--max-matches: goes with a rating run"),
        (["--until-rd", "30"], "expected a deviation above 45 points, got 30"),
        (["--until-rd", "0"], "--until-rd"),
        (["--maps", "0"], "--maps"),
        (["--scenario", "dule"], "did you mean 'duel'"),
        (["--processes", "2", "--ray"], "not allowed with argument"),
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


@pytest.mark.long
def test_a_terminal_shows_the_progress(league, tiny):
    arguments = ["play", str(league.path), "--scenario", str(tiny), "--maps", "1", "--max-matches", "3"]
    terminal, theirs = pty.openpty()
    environment = {**SCRIPT_ENVIRONMENT, "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen([*COMMAND, *arguments], env=environment, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # how a terminal ends
                break
        out = process.stdout.read().decode()
    os.close(terminal)
    assert process.returncode == 0
    assert "3 matches, greatest RD " in shown.decode() and ", 75 wanted" in shown.decode()
    assert "Standings: " in out and "greatest RD" not in out


def test_replay(commands, league, tiny, tmp_path):
    commands.lines("add", league.path, saved(tmp_path / "policy"), "--name", "tyro")
    commands.lines("play", league.path, "tyro", "random", "--scenario", tiny, "--maps", 2)
    (match,) = league.matches()
    listed = commands.lines("replay", league.path)
    assert listed[1].split()[:3] == [match.uuid[:8], "tyro", "random"]
    assert listed[-1] == "the last 1 of 1 match; the score is the first's"
    lines = commands.lines("replay", league.path, match.uuid[:8])
    assert lines[-1] == "Played again: all 4 battles end as recorded."
    document = commands.json("replay", league.path, match.uuid)
    assert (document["uuid"], document["same"], document["different_battles"]) == (match.uuid, True, [])
    assert len(league.matches()) == 1


def test_a_match_of_other_versions_is_replayed_by_force_only(commands, league, tiny, monkeypatch):
    commands.lines("play", league.path, "idle", "random", "--scenario", tiny, "--maps", 1)
    uuid = league.matches()[0].uuid
    monkeypatch.setattr(replay, "stamp", lambda: {**stamp(), "engine_hash": "0" * 64})
    caution = "the rules, the engine, or what players observe have changed since"
    assert caution in commands.refusal("replay", league.path, uuid)
    assert commands.text("replay", league.path, uuid, "--force").endswith(f"end as recorded. - {caution}")
    assert commands.json("replay", league.path, uuid, "--force")["cautions"] == [caution]


def test_a_match_that_ends_differently(commands, league, tiny):
    commands.lines("play", league.path, "random", "idle", "--scenario", tiny, "--maps", 2)
    (played_match,) = league.matches()
    first, *others = played_match.match.battles
    forged = dataclasses.replace(first, outcome=0 if first.outcome else 1)
    match = dataclasses.replace(played_match.match, battles=(forged, *others))
    uuid = number_uuid(1)
    league.record(dataclasses.replace(played_match, uuid=uuid, match=match))
    assert "Played again: 1 of 4 battles end differently." in commands.text("replay", league.path, uuid, code=1)
    assert commands.json("replay", league.path, uuid, code=1)["different_battles"] == [0]


def test_a_film_of_a_battle(commands, league, tiny, tmp_path):
    commands.lines("play", league.path, "idle", "random", "--scenario", tiny, "--maps", 1)
    uuid, film = league.matches()[0].uuid, tmp_path / "battle.gif"
    document = commands.json("replay", league.path, uuid, "--gif", film, "--battle", 1)
    assert (document["battle"], document["blue"], document["red"]) == (1, "random", "idle")
    with Image.open(film) as pictures:
        assert pictures.n_frames > 2
    text = commands.text("replay", league.path, uuid, "--gif", tmp_path / "first.gif")
    assert text == f"{tmp_path / 'first.gif'}: battle 0 of 2, idle is blue and random is red"
    assert "exists already" in commands.refusal("replay", league.path, uuid, "--gif", film)
    commands.text("replay", league.path, uuid, "--html", tmp_path / "battle.html", "--battle", 1)
    assert read_replay(tmp_path / "battle.html").players == ("random", "idle")
    message = commands.refusal("replay", league.path, uuid, "--gif", tmp_path / "x.gif", "--battle", 2)
    assert "has the battles 0 to 1, got 2" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--force"], "expected the MATCH"),
        (["--gif", "x.gif"], "expected the MATCH"),
        (["1234", "--battle", "1"], "--battle: goes with --gif and --html"),
        (["1234", "--gif", "x.gif", "--html", "x.html"], "--html: not allowed with --gif"),
        (["1234", "--html", "x.gif"], "ends in .html, got x.gif"),
        (["1234", "--gif", "x.png"], "ends in .gif, got x.png"),
        (["1234"], "0 matches have it"),
    ],
)
def test_replay_refuses_what_is_impossible(arguments, message, commands, league):
    assert message in commands.refusal("replay", league.path, *arguments)
