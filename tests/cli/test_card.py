"""`echelon card`."""

import json

import pytest

from cli.test_dispatch import fail
from echelon_env.cli import main
from echelon_env.evaluate.card import read_card
from support.tiny import TINY


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder with a scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    return tmp_path


OPTIONS = ["--scenario", "tiny.toml", "--battles", "2", "--without", "warnings", "laser+autocannon"]


def test_a_card_is_printed_and_written(tiny, capsys):
    arguments = ["card", "novice", *OPTIONS, "--opponent", "trivial", "--set", "max_steps=6", "--out", "card.json"]
    assert main([*arguments, "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card == read_card(tiny / "card.json")
    assert (card["player"]["name"], card["opponent"]["name"]) == ("novice", "trivial")
    assert (card["scenario"], card["config"]["max_steps"], card["battles"]) == ("tiny.toml (max_steps=6)", 6, 2)
    assert [row["without"] for row in card["rows"]] == ["warnings", "laser+autocannon"]
    assert "exists already" in fail(arguments, capsys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "PLAYER"),
        (["nowhere"], "nowhere: no such file or folder"),
        (["novice", "--opponent", "novic"], "did you mean 'novice'"),
        (["novice", "--scenario", "dule"], "did you mean 'duel'"),
        (["novice", "--set", "max_step=3"], "max_step"),
        (["novice", "--battles", "3"], "expected an even number"),
        (["novice", "--without", "jet"], "--without: nothing to ablate is called 'jet'"),
        (["novice", "--out", "none/card.json"], "is not a folder"),
    ],
)
def test_bad_command_lines_say_why_before_any_battle(tiny, options, message, capsys):
    assert message in fail(["card", *options], capsys)
