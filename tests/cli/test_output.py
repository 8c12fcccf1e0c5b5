"""What commands print: nothing that controls a terminal, little of what is long, and commands that a shell takes."""

import ast
import contextlib
import io
import itertools
import re
import shlex
import sys
from pathlib import Path

import pytest
from rich.console import Console

import echelon_env
import echelon_train
from echelon_env.cli import main
from echelon_env.cli.output import command, printable_output, show_status
from echelon_env.replays import write_replay
from echelon_train.console import PrintableConsole
from replays.battles import recorded

HOSTILE = "a\x1b[31m\x07\x9b2J\r\u202eb"
SHOWN = "a?[31m??2J??b"
LONG = "x" * 900_000
COMMAND = r"(\bechelon [a-z]+|--logdir|--out)"


def output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with contextlib.suppress(SystemExit):
        main(arguments)
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", f"{HOSTILE}.replay"],
        ["replay", f"{HOSTILE}.missing"],
        ["leaderboard", f"{HOSTILE}.missing"],
        ["evaluate", f"{HOSTILE}/missing"],
        ["evaluate", "idle", "--suite", f"{HOSTILE}.json"],
        ["evaluate", "idle", "--eval-seeds", HOSTILE],
        ["evaluate", "idle", "--out", f"{HOSTILE}.replay"],
        ["evaluate", HOSTILE, HOSTILE],
        ["bench", "--scenarios", f"{HOSTILE}.toml"],
        ["maps", "--scenario", "duel", "--maps", "2", "--recipes", f"{HOSTILE}-recipes"],
        ["train", f"{HOSTILE}.toml"],
        ["train", "--resume", HOSTILE],
        ["report", HOSTILE],
        ["league", "init", f"{HOSTILE}-league"],
        ["league", "standings", HOSTILE],
        [HOSTILE],
        ["bench", f"--{HOSTILE}"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]).replace(HOSTILE, "HOSTILE"),
)
def test_names_of_files_do_not_control_the_terminal(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_replay(f"{HOSTILE}.replay", recorded())
    text = output(arguments, capsys)
    assert SHOWN in text or repr(HOSTILE)[1:-1] in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_a_line_in_the_name_of_a_file_is_not_a_line_of_the_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = "a\nechelon: all is well"
    write_replay(name, recorded())
    assert output(["replay", name], capsys).startswith("a?echelon: all is well\n")
    assert output(["replay", f"{name}!"], capsys) == "echelon: a echelon: all is well!: No such file or directory\n"


@pytest.mark.parametrize(
    "settings",
    [f'init = "{LONG}"', f'opponent = "policy:{LONG}"', f'maps = "{LONG}"', f'device = "{LONG}"',
     f'league.path = "{LONG}"', f'opponent = "{LONG}"', f"seed = -{'1' * 4000}", f"network.width = '{LONG}'"],
    ids=["init", "policy", "maps", "device", "league", "opponent", "seed", "network"],
)  # fmt: skip
def test_a_long_value_in_a_file_gives_a_short_message(settings, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(f'scenario = "duel"\n{settings}\n')
    text = output(["train", "run.toml", "--out", "run"], capsys)
    assert 20 < len(text) < 5000 and text.count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_escape_sequences_of_our_own_reach_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with printable_output():
        assert not sys.stderr.isatty()  # so that libraries write no colours
        print(f"\x1b[32m{HOSTILE}\n", end="", file=sys.stderr)
        show_status(HOSTILE)
        console = PrintableConsole(stderr=True, force_terminal=True, color_system="standard", width=60)
        console.print(f"[bold]{HOSTILE}[/]", highlight=False)
        with console.status(HOSTILE):
            print(HOSTILE)
        Console(stderr=True, force_terminal=True, color_system="standard").print("[bold]a[/]")
    text = terminal.getvalue()
    by_rich = SHOWN.replace("??2J??", "?2J?")  # which leaves out the bell and the carriage return
    assert text.startswith(f"?[32m{SHOWN}\n\r{SHOWN}{' ' * (79 - len(SHOWN))}\r\x1b[1m{by_rich}\x1b[0m\n")
    assert HOSTILE not in text and "\x1b[31m" not in text and "\x1b[?25l" in text
    assert text.endswith("?[1ma?[0m\n")  # of a console that is not ours


def test_commands_to_copy_are_quoted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = "it's $(mine); & <new>"
    assert shlex.split(command("train", "--resume", Path(folder), 3)) == ["echelon", "train", "--resume", folder, "3"]
    main(["league", "init", folder])
    lines = capsys.readouterr().out.splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("  echelon")]
    assert len(commands) == 4 and all(folder in words for words in commands)
    assert shlex.quote(folder) in output(["report", folder], capsys)


def test_no_command_is_put_together_without_quotes():
    """In no f-string a value follows words of a command, unless it has been quoted."""
    found = []
    for package in (echelon_env, echelon_train):
        for path in Path(package.__path__[0]).rglob("*.py"):
            source = path.read_text()
            for node in ast.walk(ast.parse(source)) if re.search(COMMAND, source) else ():
                parts = node.values if isinstance(node, ast.JoinedStr) else []
                for text, value in itertools.pairwise(parts):
                    words = text.value if isinstance(text, ast.Constant) else ""
                    is_command = re.search(rf"{COMMAND} [^;:]*$", words)
                    if is_command and "shlex.quote" not in ast.unparse(value):
                        found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
