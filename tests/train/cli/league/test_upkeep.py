"""``echelon league rebuild`` and ``fsck``; and what all commands have in common."""

import re

import pytest

from echelon_env.cli import main
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from train.league.leagues import change, saved


def test_rebuild(commands, league):
    ratings = league.ratings()
    assert commands.lines("rebuild", league.path) == ["All ratings are computed again: none has changed."]
    change(league, "UPDATE ratings SET rating = rating + 1 WHERE member = 2")
    assert commands.json("rebuild", league.path)["changed"] == 1
    assert league.ratings() == ratings


def test_fsck_names_the_damage_and_the_remedy(commands, league, tmp_path):
    assert commands.lines("fsck", league.path) == [f"{league.path}: nothing is damaged"]
    assert commands.json("fsck", league.path)["findings"] == []
    league.add_checkpoint(saved(tmp_path / "one"), "past", "one")
    with (league.member_policy("one") / WEIGHTS_FILE).open("ab") as file:
        file.write(b"x")
    text = commands.text("fsck", league.path, code=1)
    assert text.startswith(f"{league.path}: 1 finding - member one: ")
    assert "altered: its SHA-256 is" in text and "To do: restore the folder" in text
    (finding,) = commands.json("fsck", league.path, code=1)["findings"]
    assert finding["subject"] == "member one" and finding.keys() == {"subject", "problem", "remedy"}


def test_every_command_prints_json_if_asked_and_refuses_what_is_no_league(commands, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["league", "--help"])
    listed = re.findall(r"^    (\w+)", capsys.readouterr().out, re.MULTILINE)
    assert len(listed) == 13
    for command in listed:
        with pytest.raises(SystemExit):
            main(["league", command, "--help"])
        assert "--json" in capsys.readouterr().out
        if command not in ("init", "run"):  # these create one
            more = ["idle"] if command in ("add", "promote", "retire", "exploit") else []
            message = commands.refusal(command, tmp_path / "nowhere", *more)
            assert "is no league (no such folder)" in message, command
    assert list(tmp_path.iterdir()) == []


def test_bad_command_lines_say_why_in_one_line(commands, league):
    assert "invalid choice: 'standngs'" in commands.refusal("standngs", league.path)
    assert "COMMAND" in commands.refusal()
    assert "LEAGUE" in commands.refusal("standings")
    expected = "'league standings' takes no '--jsno'; did you mean --json? (see 'echelon league standings --help')"
    assert expected in commands.refusal("standings", league.path, "--jsno")
