"""Commands and players of other packages: a distribution on `sys.path` that declares entry points."""

import importlib
import importlib.metadata
import json
import sys

import numpy as np
import pytest

from cli.test_dispatch import fail
from echelon_env import opponents
from echelon_env.cli import main
from echelon_env.layout.observations import OBSERVATION_DIM

COMMAND = '''"""Greet 100% politely."""

def add_arguments(parser):
    parser.add_argument("--name", default="world")

def run(args):
    print(f"hello {args.name}")
    return 3
'''

PLAYER = """
from echelon_env.evaluate import Player, baseline

def make(argument, seed, *, action_mode):
    return Player(f"third {argument} {seed} {action_mode}", "scripted", baseline("idle").make)

def make_nothing(argument, seed, *, action_mode):
    return None
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution with a module `<name>_module` and entry points on `sys.path`."""
    monkeypatch.syspath_prepend(tmp_path)
    modules = []

    def install(name: str, source: str, entry_points: str) -> None:
        (tmp_path / f"{name}_module.py").write_text(source)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        importlib.invalidate_caches()
        modules.append(f"{name}_module")

    yield install
    for module in modules:
        sys.modules.pop(module, None)


def overview(capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as leave:
        main(["--help"])
    assert leave.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def test_an_installed_package_adds_a_command(install, capsys):
    install("third", COMMAND, "[echelon.commands]\ngreet = third_module\n")
    assert "greet Greet 100% politely" in overview(capsys)
    assert main(["greet", "--name", "you"]) == 3
    assert capsys.readouterr().out == "hello you\n"
    assert "'greet' takes no '--nane'; did you mean --name?" in fail(["greet", "--nane=x"], capsys)
    assert "did you mean 'greet'" in fail(["gret"], capsys)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("def add_arguments(parser): pass", "broken_module has no function run"),
    ],
)
def test_a_broken_command_is_reported_in_one_line_and_the_others_work(source, reason, install, capsys):
    install("broken", source, "[echelon.commands]\nwrong = broken_module\n")
    line = f"'wrong' of broken cannot be used: {reason}"
    assert fail(["wrong"], capsys) == f"echelon: {line}\n"
    listed = overview(capsys)
    assert line in listed and "Measure the speed of battles" in listed
    assert main(["maps", "--scenario", "duel-open", "--maps", "1", "--statistics"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_no_package_replaces_a_command_of_another(install, capsys):
    install("third", COMMAND, "[echelon.commands]\nbench = third_module\ngreet = third_module\n")
    players = "[echelon.players]\nnovice = fourth_module\nuntrained = fourth_module\n"
    declared = f"[echelon.commands]\ngreet = fourth_module\n\n{players}"
    install("fourth", COMMAND.replace("hello", "goodbye"), declared)
    assert main(["greet"]) == 3
    printed = capsys.readouterr()
    assert printed.out == "goodbye world\n"
    assert printed.err.splitlines() == [
        "echelon: 'bench' of third is ignored: echelon-env declares it in echelon.commands",
        "echelon: 'greet' of third is ignored: fourth declares it in echelon.commands",
        "echelon: 'novice' of fourth is ignored: the name is taken",
        "echelon: 'untrained' of fourth is ignored: echelon-env declares it in echelon.players",
    ]
    assert main(["bench", "--scenarios", "duel", "--seconds", "0.01"]) == 0


def test_an_installed_package_adds_a_kind_of_player(install, capsys):
    install(
        "third",
        PLAYER,
        "[echelon.players]\nthird = third_module:make\nnothing = third_module:make_nothing\nmissing = third_module:x\n",
    )
    arguments = ["evaluate", "third", "third:a:b", "--scenario", "duel-open", "--battles", "2", "--seed", "7", "--json"]
    assert main([*arguments, "--actions", "deterministic"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [player["name"] for player in report["players"]] == ["third  7 deterministic", "third a:b 7 deterministic"]
    assert main(["evaluate", "third:a@fire_rate=0.5", *arguments[3:]]) == 0
    assert "third:a@fire_rate=0.5" in capsys.readouterr().out
    assert isinstance(opponents.make({"third:a": 1, "novice": 1}, 0, "duel"), opponents.Mixture)
    assert "did you mean 'third'" in fail(["evaluate", "thrid"], capsys)
    assert fail(["evaluate", "nothing"], capsys) == (
        "echelon: 'nothing' of third cannot be used: expected a Player, got NoneType\n"
    )


STATEFUL = """
import numpy as np
from echelon_env.evaluate import Player

class Rows:
    def __init__(self, noise):
        self.noise = noise
    def reset(self, mask):
        pass
    def act(self, observations):
        return self.noise.uniform()
    def state_arrays(self):
        return {}
    def restore_arrays(self, arrays, rows):
        pass

def make(argument, seed, *, action_mode):
    return Player("rows", "uniform", lambda config, noise: Rows(noise))
"""


def test_a_player_of_a_package_continues_from_its_state_and_others_are_refused_in_training(install, tmp_path, capsys):
    install("third", PLAYER, "[echelon.players]\nthird = third_module:make\n")
    install("rows", STATEFUL, "[echelon.players]\nrows = rows_module:make\n")
    one, other = (opponents.make("rows", 3, "duel") for _ in range(2))
    seen = np.random.default_rng(0).random((2, OBSERVATION_DIM)).astype(np.float32)
    one.reset(np.ones(2, np.bool_))
    one.act(seen)
    other.restore_arrays(one.state_arrays(), 2)
    np.testing.assert_array_equal(one.act(seen), other.act(seen))
    with pytest.raises(ValueError, match="fresh"):
        other.restore_arrays(one.state_arrays(), 3)
    arguments = ["train", "--scenario", "duel-open", "--opponent", "third", "--out", str(tmp_path / "run")]
    assert "cannot be resumed" in fail(arguments, capsys)
    assert not (tmp_path / "run").exists()


def test_a_broken_kind_of_player_is_reported_in_one_line_and_the_others_work(install, capsys):
    install("broken", PLAYER, "[echelon.players]\nwrong = broken_module:missing\n")
    message = fail(["evaluate", "wrong:x"], capsys)
    assert message.startswith("echelon: 'wrong' of broken cannot be used: AttributeError: ")
    assert main(["evaluate", "idle", "--scenario", "duel-open", "--battles", "2"]) == 0
