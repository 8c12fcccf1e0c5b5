"""`echelon play --watch`, its battles and its server."""

import base64
import gzip
import json
import re
import shutil
import time

import pytest

from cli.test_dispatch import fail
from cli.test_play import ask, running
from echelon_env import make_config
from echelon_env.champions import champion_folder
from echelon_env.cli import main, watch_server
from echelon_env.cli.watch_server import LiveBattles, WatchServer
from echelon_env.evaluate import baseline
from echelon_env.networks.checkpoint import JSON_FILE, LAST_FILE, RUN_FILE, read_checkpoint
from echelon_env.replays.files import unpack


def add_checkpoint(run, steps):
    """Make a champion the last checkpoint of a run, with this number of steps."""
    folder = shutil.copytree(champion_folder("duel"), run / "checkpoints" / str(steps))
    document = json.loads((folder / JSON_FILE).read_text())
    (folder / JSON_FILE).write_text(json.dumps({**document, "steps": steps}))
    (run / LAST_FILE).write_text(json.dumps({"checkpoint": folder.name}))
    return folder


@pytest.fixture
def run(tmp_path):
    """A run that has a checkpoint."""
    run = tmp_path / "mine"
    add_checkpoint(run, 1_000)
    return run


@pytest.fixture
def battles(run):
    return LiveBattles(str(run), baseline("novice"), None, 0)


def parts(page):
    """The world's description and the replay in a page."""
    text = {name: re.search(rf'id="{name}">([^<]*)<', page.decode())[1] for name in ("world", "replay")}
    world = gzip.decompress(base64.b64decode(text["world"]))
    return json.loads(world.partition(b"\n")[0]), unpack(base64.b64decode(text["replay"]))


def test_the_page_of_a_battle(battles):
    assert battles.newest[:2] == (1, 1_000)
    page = battles.newest.page
    world, replay = parts(page)
    assert world["live"] == 1
    assert replay.players == ("mine at 1,000 decisions", "novice")
    assert replay.config == read_checkpoint(champion_folder("duel")).battle
    assert replay.first_difference() is None
    assert b"<title>mine at 1,000 decisions v novice - " in page
    assert b"; connect-src 'self'\"" in page


def test_the_given_scenario_opponent_and_seed(run):
    first, other = (LiveBattles(str(run), baseline("idle"), make_config("duel-open"), seed) for seed in (0, 1))
    replays = [parts(each.newest.page)[1] for each in (first, other)]
    assert {replay.players[1] for replay in replays} == {"idle"}
    assert all(replay.config == make_config("duel-open") for replay in replays)
    assert replays[0].map_seed != replays[1].map_seed


def test_a_newer_checkpoint_has_a_battle_on_another_map(battles, run):
    before = battles.newest
    battles.look()
    assert battles.newest is before
    add_checkpoint(run, 2_000)
    battles.look()
    assert battles.newest[:2] == (2, 2_000)
    world, replay = parts(battles.newest.page)
    assert world["live"] == 2 and replay.players[0] == "mine at 2,000 decisions"
    assert replay.map_seed != parts(before.page)[1].map_seed


def test_another_battle_of_the_same_checkpoint(battles):
    battles.look(another=True)
    assert battles.newest[:2] == (2, 1_000)


def test_a_run_that_cannot_be_read_is_read_again(battles, run, capsys):
    shutil.rmtree(add_checkpoint(run, 2_000))
    for _ in range(2):
        battles.look()
    assert battles.newest.number == 1
    assert re.fullmatch(r"echelon: .*mine/checkpoints/2000.*\n", capsys.readouterr().err)
    battles.look(another=True)
    assert battles.newest[:2] == (2, 1_000)
    add_checkpoint(run, 3_000)
    battles.look()
    assert battles.newest[:2] == (3, 3_000)
    shutil.rmtree(run)
    battles.look()
    assert battles.newest.number == 3


def test_a_checkpoint_whose_battle_fails_is_not_tried_all_the_time(battles, run, monkeypatch):
    seeds = []

    def refuse(*players, seed):
        seeds.append(seed)
        raise OSError("out of luck")

    with monkeypatch.context() as patched:
        patched.setattr(watch_server, "record_battle", refuse)
        add_checkpoint(run, 2_000)
        for _ in range(3):
            battles.look()
    assert len(seeds) == 1 and battles.newest.number == 1
    battles.look(another=True)
    assert battles.newest[:2] == (2, 2_000)


def answer(server, path):
    response, body = ask(server, f"/{server.token}/{path}")
    assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
    return json.loads(body)


def number_after(server, path, number):
    """The number of the next battle but `number` that a path answers."""
    deadline = time.monotonic() + 60
    while (found := answer(server, path)["number"]) == number:
        if time.monotonic() > deadline:
            pytest.fail(f"there is no other battle than {number}")
        time.sleep(0.01)
    return found


def test_the_server_follows_the_run(battles, run, monkeypatch):
    monkeypatch.setattr(watch_server, "INTERVAL", 0.02)
    with running(WatchServer(battles)) as server:
        response, body = ask(server, f"/{server.token}/")
        assert (response.status, body) == (200, battles.newest.page)
        assert answer(server, "next/0") == {"number": 1, "decisions": 1_000}
        add_checkpoint(run, 2_000)
        assert number_after(server, "next/0", 1) == 2
        assert answer(server, "next/0") == {"number": 2, "decisions": 2_000}
        assert parts(ask(server, f"/{server.token}/")[1])[0]["live"] == 2
        assert ask(server, "/next/0")[0].status == ask(server, "/next/2")[0].status == 403
        for path in ("next", "next/", "next/-1", "next/x", "battles/1", "newest"):
            assert ask(server, f"/{server.token}/{path}")[0].status == 404


def test_a_page_asks_for_the_next_battle(battles, monkeypatch):
    monkeypatch.setattr(watch_server, "INTERVAL", 1e6)  # only requests wake it
    looks, look = [], battles.look

    def counted(**options):
        looks.append(options)
        look(**options)

    monkeypatch.setattr(battles, "look", counted)
    with running(WatchServer(battles)) as server:
        for number in (0, 2, 999):  # not the newest one
            assert answer(server, f"next/{number}")["number"] == 1
        assert looks == []
        assert number_after(server, "next/1", 1) == 2
        assert answer(server, "next/1") == {"number": 2, "decisions": 1_000}
        assert number_after(server, "next/2", 2) == 3
    assert battles.newest.number == 3


def test_the_command_waits_for_the_first_checkpoint(tmp_path, monkeypatch, capsys):
    run, servers, pages = tmp_path / "mine", [], []
    run.mkdir()
    (run / RUN_FILE).write_text("{}")

    def serve(*args):
        servers.append(WatchServer(*args))
        return servers[0]

    def browse(url):
        pages.append(ask(servers[0], f"/{servers[0].token}/")[1])
        servers[0].shutdown()

    monkeypatch.setattr("webbrowser.open", browse)
    monkeypatch.setattr("echelon_env.cli.play.WatchServer", serve)
    monkeypatch.setattr("time.sleep", lambda seconds: add_checkpoint(run, 7))
    assert main(["play", "duel-open", "--watch", str(run), "--opponent", "idle", "--seed", "5"]) == 0
    assert parts(pages[0])[1].players == ("mine at 7 decisions", "idle")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Waiting for the first checkpoint of {run}"
    assert lines[1] == f"Watching {run} at {servers[0].url}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--teammate", "expert"], "--teammate: not allowed with --watch"),
        (["--as", "none"], "--as: not allowed with --watch"),
        (["--html", "x.html"], "--html: not allowed with --watch"),
        (["--maps", "2"], "--maps: not allowed with --watch"),
        (["--opponent", "expret"], "expret"),
        (["--seed", "-1"], "--seed: expected an integer of at least 0"),
        (["no-scenario"], "no-scenario"),
        ([], "mine: no such file or folder"),
    ],
)
def test_bad_requests_are_refused_in_one_line(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fail(["play", "--watch", "mine", *options, "--no-browser"], capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_refused(capsys, tmp_path):
    assert "neither a checkpoint" in fail(["play", "--watch", str(tmp_path), "--no-browser"], capsys)
