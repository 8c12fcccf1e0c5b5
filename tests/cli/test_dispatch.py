import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from echelon_env.cli import main
from echelon_env.cli.arguments import CommandParser
from echelon_env.cli.dispatch import TRAIN_PACKAGES
from echelon_env.config import plugins
from echelon_env.engine.kernels import Bound, EntryPoint
from echelon_env.evaluate.stamps import describe_machine


def fail(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a bad command line prints."""
    try:
        code = main(arguments)
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["bnch"], "did you mean 'bench'"),
        (["bench", "--seconds", "-1"], "--seconds"),
        (["bench", "--scenarios", "dule"], "did you mean 'duel'"),
        (["train", "--battle.max_steps=9"], "did you mean --set battle.max_steps=VALUE?"),
        (
            ["train", "--ppo.n-epoch", "3"],
            "'train' takes no '--ppo.n-epoch'; did you mean --ppo.n-epochs? (see 'echelon train --help')",
        ),
        (["bench", "more"], "'bench' takes no 'more' (see 'echelon bench --help')"),
        (["train", "--out", "x", "--device", "tpu"], "unknown device 'tpu'"),
        (["demo", "--max-minutes", "0"], "--max-minutes"),
        (["demo", "--minutes", "1"], "takes no '--minutes'; did you mean --max-minutes?"),
        (["league", "run", "x", "--minutes", "1"], "takes no '--minutes'; did you mean --max-minutes?"),
    ],
)
def test_bad_command_lines_are_reported_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fail(arguments, capsys)
    assert list(tmp_path.iterdir()) == []


def all_commands() -> Iterator[list[str]]:
    """The words of every command and subcommand."""
    yield []
    for name, point in plugins.declared(plugins.COMMANDS).items():
        yield [name]
        parser = CommandParser()
        point.load().add_arguments(parser)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from ([name, subcommand] for subcommand in action.choices)


@pytest.mark.parametrize("words", [*all_commands()], ids=" ".join)
def test_help_fits_a_terminal(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as leave:
        main([*words, "--help"])
    assert leave.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(len(line) <= 80 for line in lines)
    assert len(lines) <= 40


@pytest.mark.parametrize(
    ("words", "rare"), [(["evaluate"], "--submit"), (["league", "run"], "--until-rd"), (["train"], "--ppo.chunk")]
)
def test_full_help_has_the_options_that_help_leaves_out(words, rare, capsys):
    texts = []
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main([*words, option])
        texts.append(capsys.readouterr().out)
    short, full = (set(re.findall(r"^  (--[\w.-]+)", text, re.MULTILINE)) for text in texts)
    assert short < full
    assert rare in full - short


WITHOUT_TRAIN = """
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
def find_others(name, path=None, target=None):
    return None if name.partition(".")[0] in {packages!r} else find(name, path, target)
PathFinder.find_spec = find_others  # as if they were not installed
from echelon_env.cli import main
sys.exit(main({arguments!r}))
"""


def run_without_train(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = WITHOUT_TRAIN.format(packages=TRAIN_PACKAGES, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)


@pytest.mark.long
def test_without_the_extra_the_other_commands_work_and_train_reports_what_to_install(tmp_path):
    assert run_without_train("--help").returncode == 0
    result = run_without_train("bench", "--scenarios", "duel", "--seconds", "0.01")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == describe_machine() and "agent-steps/s" in lines[1]
    assert all(len(line) <= 80 for line in lines[1:])
    result = run_without_train("train", "--out", str(tmp_path / "x"))
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert 'pip install "echelon-env[train]"' in result.stderr


@pytest.mark.long
def test_bench_measures_the_given_scenarios(capsys):
    assert main(["bench", "--scenarios", "duel", "skirmish", "--seconds", "0.02"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert {row[0] for row in rows} == {"duel", "skirmish"}
    for name, battles, _, *numbers in rows:
        env_steps, agent_steps, reset_ms = (float(each.replace(",", "")) for each in numbers)
        mechs = {"duel": 2, "skirmish": 10}[name]
        assert int(battles) >= 160 // mechs
        assert 0 < agent_steps <= mechs * (env_steps + 1) and reset_ms > 0  # printed as whole numbers


def test_train_then_evaluate(tmp_path, capsys):
    out = str(tmp_path / "run")
    arguments = ["--opponent", "trivial", "--steps", "64", "--battles", "2", "--eval-every", "0", "--device", "cpu"]
    assert main(["train", *arguments, "--out", out]) == 0
    printed = capsys.readouterr().out
    assert "Trained on 64 decisions." in printed
    assert main(["evaluate", out, "--opponent", "trivial", "--battles", "2"]) == 0
    assert " (sampled actions) against trivial, 2 battles, seed 0\nin duel\non 1 map, " in capsys.readouterr().out
    assert main(["evaluate", out, "idle", "--actions", "deterministic", "--battles", "2", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(match["first"], match["scenario"]) for match in report["matches"]] == [(out, "duel")]
    assert report["players"][0]["action_mode"] == "deterministic"
    assert report["players"][0]["maps_trained_on"] == 0
    assert main(["train", *arguments, "--out", out]) == 2
    assert "never overwritten" in capsys.readouterr().err


def test_a_closed_output_pipe_is_no_error():
    program = "import sys; from echelon_env.cli import main; sys.exit(main())"
    arguments = ["maps", "--scenario", "duel-open", "--maps", "2", "--statistics"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_the_module_and_the_script_are_the_command():
    """A terminal without a character gets another one."""
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="echelon")
    assert script.load() is main
    command, environment = [sys.executable, "-m", "echelon_env", "b\xb1nch"], os.environ | {"PYTHONIOENCODING": "ascii"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment | {"PYTHONUTF8": "0"})
    assert found.returncode == 2 and "did you mean 'bench'" in found.stderr


def test_warmup_calls_every_entry_point(monkeypatch, capsys):
    called, init = set(), Bound.__init__

    def watched(self, entry, first):
        init(self, entry, first)
        call = self.call

        def named(*rest):
            called.add(entry.function.__name__)
            return call(*rest)

        self.call = named

    monkeypatch.setattr(Bound, "__init__", watched)
    monkeypatch.setattr(EntryPoint, "__call__", lambda self, *arguments: self.bind()(*arguments))
    assert main(["warmup"]) == 0
    of_gpus = "echelon_env.engine.playing"
    modules = [m for name, m in sys.modules.items() if name.startswith("echelon_env.") and name != of_gpus]
    found = {each.function.__name__ for module in modules for each in vars(module).values() if type(each) is EntryPoint}
    assert called == found and len(found) >= 9
