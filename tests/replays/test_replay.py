import dataclasses
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from echelon_env import make_config
from echelon_env.cli import main
from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.layout.actions import Action
from echelon_env.replays import (
    ReplayError,
    export_gif,
    export_npz,
    read_replay,
    record_battle,
    show,
    transitions,
    write_page,
    write_replay,
)
from echelon_env.replays.files import MAX_BYTES, MAX_UNPACKED_BYTES, pack
from oracles.configs import ALL_OFF
from replays.battles import recorded


@pytest.mark.parametrize("abilities", [{}, ALL_OFF], ids=["all", "none"])
def test_a_file_has_the_whole_replay(tmp_path, abilities):
    replay = recorded(make_config("skirmish-open", abilities=abilities))
    write_replay(tmp_path / "one.replay", replay)
    found = read_replay(tmp_path / "one.replay")
    for field in dataclasses.fields(replay):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(replay, field.name))
    assert found.first_difference() is None
    assert pack(found) == pack(replay)


@pytest.mark.parametrize("decision", [0, 5, 11])
def test_another_action_is_found_at_its_decision(decision):
    replay = recorded()
    actions = replay.actions.copy()
    actions[decision, 3, Action.TURN] = -np.sign(actions[decision, 3, Action.TURN])
    assert dataclasses.replace(replay, actions=actions).first_difference() == decision + 1


def test_other_seeds_and_digests_are_found():
    replay = recorded()
    digests = replay.digests.copy()
    digests[4, 0] ^= 1
    assert dataclasses.replace(replay, digests=digests).first_difference() == 4
    assert dataclasses.replace(replay, seed=replay.seed + 1).first_difference() == 0
    for wrong in ("0" * 64, None):  # None would be right for a battle that is not over
        assert dataclasses.replace(replay, voxels_digest=wrong).first_difference() == replay.decisions
    with pytest.raises(ReplayError, match="the map of seed 4 has the content hash"):
        dataclasses.replace(replay, map_seed=4).first_difference()


def damaged(**changes):
    line, _, body = gzip.decompress(pack(recorded())).partition(b"\n")
    header = json.loads(line) | changes
    return gzip.compress(json.dumps(header).encode() + b"\n" + body)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: b"", "not a replay"),
        (lambda: b"PK\x03\x04 a zip", "not a replay"),
        (lambda: pack(recorded())[:900] + b"x" + pack(recorded())[901:], "not a replay"),  # gzip has a checksum
        (lambda: pack(recorded())[:-40], r"not a replay \(truncated\)"),
        (lambda: pack(recorded()) + b"x", "1 bytes after the end"),
        (lambda: gzip.compress(b"no header"), "no header"),
        (lambda: gzip.compress(b"{}\n"), "not a replay of echelon-env"),
        (lambda: gzip.compress(b'{"version": 1, "version": 2}\n'), "header: .*got 'version' twice"),
        (lambda: gzip.compress(b"[" * 100_000 + b"\n"), "header"),
        (lambda: gzip.compress(bytes(MAX_UNPACKED_BYTES + 1)), "larger than"),
        (lambda: bytes(MAX_BYTES + 1), "larger than 5,000,000 bytes"),
        (lambda: damaged(version=1), "version 1 of the format, this release reads 2: a release before 0.3 made it"),
        (lambda: damaged(version=10**999), r"version [0-9.]{20,50} of the format"),
        (lambda: damaged(seed=-1), "seed: expected an integer from 0"),
        (lambda: damaged(seed=True), "seed: unexpected value True"),
        (lambda: damaged(map_hash=3), "map_hash: unexpected value 3"),
        (lambda: damaged(players=["one"]), "players: expected the names"),
        (lambda: damaged(players=["one", "\x1b[2J"]), "printable names"),
        (lambda: damaged(map_hash="\x1b[2J"), "map_hash: expected 64 hexadecimal digits"),
        (lambda: damaged(decisions=13), "decisions: expected 0 to 12, got 13"),
        (lambda: damaged(decisions=11), "truncated, or of another layout"),
        (lambda: damaged(config={"blu": []}), "did you mean 'blue'"),
        (lambda: damaged(stamp={"engine_hash": "x" * 300}), "stamp: expected short printable texts"),
        (lambda: b'<script type="application/octet-stream" id="replay">AAA</script>', "page: .*padding"),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, data, message):
    (tmp_path / "page").write_bytes(data())
    with pytest.raises(ReplayError, match=message):
        read_replay(tmp_path / "page")


def test_the_command_checks_and_converts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_replay("one.replay", recorded())
    assert main(["replay", "one.replay", "--html", "pages", "--npz", "."]) == 0
    said = capsys.readouterr().out
    assert "left (blue) v right (red), 5 v 5: draw, time limit" in said and "12 of 12 decisions equal" in said
    assert main(["replay", "pages/one.html", "--replay", "."]) == 0
    assert Path("one-2.replay").read_bytes() == Path("one.replay").read_bytes()
    actions = recorded().actions.copy()
    actions[3] = 0.0
    write_replay("other.replay", dataclasses.replace(recorded(), actions=actions))
    Path("bad.replay").write_bytes(damaged(map_hash="0" * 64))
    capsys.readouterr()
    for files, code, error in (
        (["other.replay"], 1, "  no transitions of a battle that differs from its recording"),
        (["pages"], 2, "echelon: pages: Is a directory"),
        (["one.npz"], 2, "echelon: one.npz: not a replay"),
        (["none.replay"], 2, "echelon: none.replay: No such file"),
        (["bad.replay"], 2, "echelon: bad.replay: the map of seed 3 has the content hash"),
    ):
        assert main(["replay", *files, "one.replay", "--npz", "transitions"]) == code
        shown = capsys.readouterr()
        assert shown.err.startswith(error) and shown.err.count("\n") == 1
        assert "12 of 12 decisions equal" in shown.out, "the others are checked nevertheless"
        assert ("differs from the recording after decision 4 of 12" in shown.out) == (code == 1)
    assert all(path.stem.startswith("one") for path in Path("transitions").iterdir())
    monkeypatch.setattr("echelon_env.replays.export.MAX_EXPORT_BYTES", 1)
    assert main(["replay", "one.replay", "--npz", "."]) == 2
    assert capsys.readouterr().err.startswith("echelon: one.replay: --npz: observations of")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("MAX_DECISIONS", 11, "12 decisions"), ("MAX_HEADER_BYTES", 9, "bytes of the header"),
     ("MAX_UNPACKED_BYTES", 9, "bytes before compression"), ("MAX_BYTES", 9, "bytes, expected at most 9")],
)  # fmt: skip
def test_what_could_not_be_read_is_not_written(tmp_path, monkeypatch, name, value, message):
    monkeypatch.setattr(f"echelon_env.replays.files.{name}", value)
    with pytest.raises(ReplayError, match=message):
        write_replay(tmp_path / "x", recorded())
    assert not (tmp_path / "x").exists()


def test_battles_that_take_too_much_are_refused(monkeypatch):
    for name in ("MAX_STATE_BYTES", "MAX_WORK_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(f"echelon_env.replays.replay.{name}", 1000)
            with pytest.raises(ReplayError, match=r"12 decisions with [\d,]+ bytes of state are too many"):
                next(recorded().play())
    monkeypatch.setattr("echelon_env.engine.allocation.MAX_RECORDS", 1)
    with pytest.raises(ReplayError, match="expected at most 1"):
        next(recorded().play())


def test_transitions_are_what_the_environment_gave(tmp_path, monkeypatch):
    replay = recorded()
    arrays = transitions(replay)
    steps, mechs = replay.decisions, replay.config.num_mechs
    assert arrays["observations"].shape == (steps + 1, mechs, 902)
    assert arrays["components"].shape == (steps, mechs, len(REWARD_COMPONENTS))
    np.testing.assert_allclose(arrays["components"].sum(axis=-1), arrays["rewards"], atol=1e-4)
    assert arrays["truncated"][-1].all() and not arrays["truncated"][:-1].any()
    export_npz(replay, tmp_path / "battle.npz")
    with np.load(tmp_path / "battle.npz", allow_pickle=False) as found:
        assert json.loads(str(found["metadata"]))["players"] == ["left", "right"]
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
    monkeypatch.setattr("echelon_env.replays.export.MAX_EXPORT_BYTES", arrays["observations"].nbytes - 1)
    with pytest.raises(ReplayError, match=r"observations of [\d,]+ bytes, expected at most"):
        transitions(replay)


@pytest.mark.parametrize("side", [0, 1])
def test_a_battle_of_a_match_is_recorded(side):
    first, second, config = baseline("novice"), baseline("trivial"), recorded("duel-open", 12).config
    seed = evaluation_seed(7, 0)
    battle = play_match(first, second, config, [seed], scenario="x").battles[side]
    replay = record_battle(first, second, config, seed=seed, side=side)
    assert replay.players == (("novice", "trivial"), ("trivial", "novice"))[side]
    assert (replay.seed, replay.map_hash) == (seed, battle.map_hash)
    assert replay.decisions * config.decision_seconds == battle.seconds


@pytest.mark.parametrize(("repeat", "milliseconds"), [(5, 12 * 125), (10, 12 * 250)])
def test_a_film_runs_at_twice_real_time(repeat, milliseconds, tmp_path):
    config = make_config("duel-open", decision_repeat=repeat, max_steps=12)
    replay = record_battle(baseline("novice"), baseline("idle"), config, seed=evaluation_seed(1, 0))
    export_gif(replay, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        shown = sum(frame.info["duration"] for frame in ImageSequence.Iterator(film))
    first_and_last = milliseconds / 12 + 2000
    assert shown == pytest.approx(milliseconds + first_and_last, abs=20)


def test_a_page_has_names_as_texts_and_is_shown_in_a_notebook(tmp_path):
    names = "</script><script>alert(1)</script>%engine%", "<img src=x onerror=alert(1)> %replay%%viewer%"
    write_page(tmp_path / "page.html", dataclasses.replace(recorded(), players=names))
    text = (tmp_path / "page.html").read_text()
    assert text.count("<img") == 1  # the picture for browsers without scripts
    assert "alert(1)</script>" not in text
    assert read_replay(tmp_path / "page.html").players == names
    shown = show(recorded())
    with Image.open(io.BytesIO(shown._repr_png_())) as picture:
        assert (picture.format, picture.width) == ("PNG", 480)
    text = shown._repr_html_()
    assert text.startswith("<iframe srcdoc=") and text.count("<") == 2  # the page is escaped
