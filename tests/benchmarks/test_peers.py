"""Peers by made-up runners; no peer is installed, and none measured."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.peers import environments, section  # noqa: E402
from benchmarks.peers.catalogue import NOT_MEASURED, PEERS, Peer  # noqa: E402
from benchmarks.peers.environments import PeerError, python_of  # noqa: E402
from benchmarks.timing import Effort  # noqa: E402

GOOD = """
from turns import serve
print("greetings from a library")
serve(lambda seconds: (2.0, 10, 40, 30), 100)
"""
BAD_START = "raise ImportError('no module')"
BAD_TURN = """
from turns import serve
def play(seconds):
    if seconds:
        raise RuntimeError("fell over")
serve(play, 100)
"""


def load_turns():
    spec = importlib.util.spec_from_file_location("turns", section.RUNNERS / "turns.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runners(tmp_path, monkeypatch):
    for name, code in {"good": GOOD, "bad_start": BAD_START, "bad_turn": BAD_TURN}.items():
        (tmp_path / f"{name}.py").write_text(code)
    (tmp_path / "turns.py").write_text((section.RUNNERS / "turns.py").read_text())
    monkeypatch.setattr(section, "RUNNERS", tmp_path)


@pytest.mark.usefixtures("runners")
class TestSection:
    def test_who_answers_is_measured_and_who_does_not_is_listed(self, monkeypatch, tmp_path):
        peers = tuple(Peer(name, name, (), step=f"{name} steps") for name in ("good", "bad_start", "bad_turn"))
        monkeypatch.setattr(section, "PEERS", peers)
        (table,) = section.peers(Effort(quick=True, rounds=2, decisions=1, peers=tmp_path))
        assert table.rows == {"good": (15.0, 20.0, 3.0, 15.0 * 100 / 1e6)}
        notes = " ".join(table.notes)
        assert "good steps" in notes
        assert "bad_start (ImportError: no module)" in notes
        assert "bad_turn (RuntimeError: fell over)" in notes
        assert all(name in notes for name in NOT_MEASURED)

    def test_what_does_not_install_is_listed(self, monkeypatch, tmp_path):
        def refuse(requirements, directory):
            raise PeerError(f"no {requirements[0]} for {directory.name}")

        monkeypatch.setattr(section, "python_of", refuse)
        monkeypatch.setattr(section, "PEERS", (Peer("good", "good", (), ("package==1",)),))
        (table,) = section.peers(Effort(quick=True, rounds=1, decisions=1, peers=tmp_path / "kept"))
        assert table.rows == {}
        assert "Not measured: good (no package==1 for kept)." in table.notes


class TestCatalogue:
    def test_every_runner_is_there(self):
        assert all((section.RUNNERS / f"{peer.runner}.py").exists() for peer in PEERS)

    def test_every_package_is_pinned(self):
        assert all("==" in requirement for peer in PEERS for requirement in peer.requirements)

    def test_every_peer_says_what_it_does(self):
        assert all(peer.step for peer in PEERS)


class TestEnvironments:
    REQUIREMENTS = ("certainly-no-such-package==1.0",)

    def test_a_full_disk_is_said_so(self, tmp_path, monkeypatch):
        monkeypatch.setattr(environments, "ROOM", 1e30)
        with pytest.raises(PeerError, match=r"GB free in .* to install it, got"):
            python_of(self.REQUIREMENTS, tmp_path)

    def test_a_directory_that_cannot_be_made_is_said_so(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(PeerError, match="file"):
            python_of(self.REQUIREMENTS, tmp_path / "file")

    @pytest.mark.slow  # makes a virtual environment
    def test_what_cannot_be_installed_leaves_nothing_behind(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        with pytest.raises(PeerError, match="No matching distribution found for certainly-no-such-package"):
            python_of(self.REQUIREMENTS, tmp_path)
        assert not any(tmp_path.iterdir())

    def test_a_whole_environment_is_used_again(self, tmp_path, monkeypatch):
        commands = []

        def run(command):
            commands.append(command)
            if "venv" in command:
                Path(command[-1]).mkdir()

        monkeypatch.setattr(environments, "run", run)
        first = python_of(self.REQUIREMENTS, tmp_path)
        assert len(commands) == 2
        assert python_of(self.REQUIREMENTS, tmp_path) == first
        assert len(commands) == 2
        assert python_of(("another==1.0",), tmp_path) != first


class TestTurns:
    def test_only_steps_count_and_the_dead_do_not(self):
        class Env:
            """Two agents, one of which dies in the second step; the battle ends with the third."""

            agents: tuple[str, ...] = ()

            def reset(self, seed=None):
                self.agents, self.left = ("a", "b"), 3

            def step(self, actions):
                assert tuple(actions) == self.agents
                assert set(actions.values()) <= {0, 1}
                self.left -= 1
                self.agents = {2: ("a", "b"), 1: ("a",), 0: ()}[self.left]

        play = load_turns().parallel_play(Env(), actions=2)
        turns = [play(0.0) for _ in range(4)]
        assert [turn[1:] for turn in turns] == [(1, 2, 2), (1, 2, 2), (1, 1, 1), (1, 2, 2)]
        assert all(turn[0] > 0 for turn in turns)

    def test_floats_are_those_of_an_agent_on_average(self):
        class Space:
            def __init__(self, *shape):
                self.shape = shape

        class Env:
            possible_agents = ("a", "b")

            def observation_space(self, agent):
                return {"a": Space(13, 13, 5), "b": Space(5)}[agent]

        assert load_turns().floats_of(Env()) == (845 + 5) / 2
