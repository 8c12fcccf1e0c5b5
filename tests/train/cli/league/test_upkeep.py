"""``echelon league rebuild``, ``fsck``, ``export`` and ``import``; and what all commands have in common."""

import re
import sqlite3

import pytest

from cli.test_dispatch import run_without_train
from echelon_env.cli import main
from echelon_train.checkpoints.checkpoint import WEIGHTS_FILE
from echelon_train.league.store.database import DATABASE_FILE
from echelon_train.league.store.registry import League
from train.league.leagues import saved, small_league

COMMANDS = [
    "init",
    "add",
    "standings",
    "play",
    "matrix",
    "history",
    "promote",
    "retire",
    "rebuild",
    "replay",
    "exploit",
    "fsck",
    "export",
    "import",
]


@pytest.fixture
def league(tmp_path):
    return small_league(tmp_path / "league")


def test_rebuild(commands, league):
    ratings = league.ratings()
    assert commands.lines("rebuild", league.path) == ["All ratings are computed again: as they were."]
    with sqlite3.connect(league.path / DATABASE_FILE) as connection:
        connection.execute("UPDATE ratings SET rating = rating + 1 WHERE member = 2")
    connection.close()
    assert commands.json("rebuild", league.path)["changed"] == 1
    assert league.ratings() == ratings


def test_fsck_of_a_sound_league(commands, league):
    assert commands.lines("fsck", league.path) == [f"{league.path}: nothing is damaged"]
    assert commands.json("fsck", league.path)["findings"] == []


def test_fsck_tells_what_is_damaged_and_what_to_do(commands, league, tmp_path):
    league.add_checkpoint(saved(tmp_path / "one"), "past", "one")
    with (league.member_policy("one") / WEIGHTS_FILE).open("ab") as file:
        file.write(b"x")
    text = commands.text("fsck", league.path, code=1)
    assert text.startswith(f"{league.path}: 1 finding - member one: ")
    assert "altered: its SHA-256 is" in text and "To do: copy the folder" in text
    (finding,) = commands.json("fsck", league.path, code=1)["findings"]
    assert finding["subject"] == "member one" and finding.keys() == {"subject", "problem", "remedy"}


def test_export_and_import(commands, league, tmp_path):
    league.add_checkpoint(saved(tmp_path / "one"), "past", "one")
    file, copy = tmp_path / "league.zip", tmp_path / "copy"
    assert commands.lines("export", league.path, file) == [f"{file}: 4 members, {file.stat().st_size:,} bytes"]
    assert "exists already" in commands.refusal("export", league.path, file)
    assert commands.lines("import", file, copy) == [f"{copy}: 4 members"]
    assert League.open(copy).ratings() == league.ratings()
    assert "is not an empty folder" in commands.refusal("import", file, copy)
    document = commands.json("export", copy, tmp_path / "again.zip")
    assert document["bytes"] == (tmp_path / "again.zip").stat().st_size
    assert commands.json("import", file, tmp_path / "third")["members"] == ["novice", "trivial", "expert", "one"]


def test_import_refuses_what_is_no_export(commands, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "no export of a league" in commands.refusal("import", tmp_path / "file", tmp_path / "new")
    assert "No such file" in commands.refusal("import", tmp_path / "nothing", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in ("init", "import")])
def test_what_is_no_league_is_refused(command, commands, tmp_path):
    more = {"add": ["idle"], "promote": ["x"], "retire": ["x"], "export": [tmp_path / "file"]}
    more["exploit"] = ["x"]
    assert "is no league (no such folder)" in commands.refusal(command, tmp_path / "nowhere", *more.get(command, []))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_json_if_asked(command, capsys):
    with pytest.raises(SystemExit):
        main(["league", command, "--help"])
    assert "--json" in capsys.readouterr().out


def test_all_commands_are_there(capsys):
    with pytest.raises(SystemExit):
        main(["league", "--help"])
    listed = re.findall(r"^    (\w+)", capsys.readouterr().out, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_bad_command_lines_say_why_in_one_line(commands, league):
    assert "invalid choice: 'standngs'" in commands.refusal("standngs", league.path)
    assert "COMMAND" in commands.refusal()
    assert "LEAGUE" in commands.refusal("standings")
    expected = (
        "'league standings' takes no '--pitcure'; did you mean --picture? (see 'echelon league standings --help')"
    )
    assert expected in commands.refusal("standings", league.path, "--pitcure", "x")


def test_without_the_extra_a_line_says_what_to_install(league):
    result = run_without_train("league", "standings", str(league.path))
    assert (result.returncode, result.stdout) == (2, "")
    assert 'pip install "echelon-env[train]"' in result.stderr and "Traceback" not in result.stderr
