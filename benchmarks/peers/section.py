"""Echelon and its peers in turns, each a process on one core that waits while the others are measured."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.catalogue import NOT_MEASURED, PEERS, Peer
from benchmarks.peers.environments import PeerError, python_of
from benchmarks.tables import Cell, Table
from benchmarks.timing import Effort, spread_note, tell

RUNNERS = Path(__file__).resolve().parent / "runners"
SECONDS_A_TURN = 1.5
LONGEST_TURN = 300.0  # s, compilation included
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LIVE, COUNTED, AGENTS, FLOATS = "of the living", "as it counts", "living", "million floats/s"

Answer = dict[str, Any]


class Runner:
    """A peer's process. Raises `PeerError`, with the last line of its complaint, when it does not answer."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # `close` closes it
        self._process = subprocess.Popen(
            command, env={**variables, **ONE_THREAD}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        try:
            self.floats = float(self._answer()["floats"])
            """Numbers of an agent's observation."""
        except PeerError:
            self.close()
            raise

    def turn(self, seconds: float) -> Answer:
        """What came of stepping for some seconds."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a process that has died is reported by what it does not answer
            print(seconds, file=self._process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _answer(self) -> Answer:
        assert self._process.stdout is not None
        watch = threading.Timer(LONGEST_TURN, self._process.kill)
        watch.start()
        try:
            for line in self._process.stdout:  # libraries greet on standard output too
                if line.startswith("{"):
                    return dict(json.loads(line))
        finally:
            watch.cancel()
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        raise PeerError(lines[-1] if lines else f"ended with status {self._process.returncode}")


def peers(effort: Effort) -> list[Table]:
    """Agent-steps per second of every environment on one core, medians over interleaved rounds."""
    reasons = dict(NOT_MEASURED)
    with contextlib.ExitStack() as stack:
        runners: dict[Peer, Runner] = {}
        for peer in PEERS:
            tell(f"peers: starting {peer.name}")
            try:
                python, variables = sys.executable, dict(os.environ)
                if peer.requirements:  # Echelon itself is the one that this process has imported
                    python = python_of(peer.requirements, effort.peers)
                    variables.pop("PYTHONPATH", None)
                runner = str(RUNNERS / f"{peer.runner}.py")
                runners[peer] = Runner([python, runner, *peer.arguments], variables)
                stack.callback(runners[peer].close)
            except PeerError as error:
                reasons[peer.name] = str(error)
        tell(f"peers: {effort.rounds} rounds of {len(runners)} measurements")
        answers = take_turns(runners, effort.rounds, SECONDS_A_TURN, reasons)
        floats = {peer: runners[peer].floats for peer in answers}
    return [table_of(answers, floats, reasons)]


def take_turns(
    runners: Mapping[Peer, Runner], rounds: int, seconds: float, reasons: dict[str, str]
) -> dict[Peer, list[Answer]]:
    """Every runner's answers; who stops answering is left out, with the reason in `reasons`."""
    answers: dict[Peer, list[Answer]] = {peer: [] for peer in runners}
    for _ in range(rounds):
        for peer in list(answers):
            try:
                answers[peer].append(runners[peer].turn(seconds))
            except PeerError as error:
                reasons[peer.name] = str(error)
                del answers[peer]
    return answers


def table_of(
    answers: Mapping[Peer, list[Answer]], floats: Mapping[Peer, float], reasons: Mapping[str, str]
) -> Table:  # fmt: skip
    """The table of the peers that were measured, with the reasons for those that were not."""
    rows: dict[str, tuple[Cell, ...]] = {}
    rates: dict[Peer, list[float]] = {}
    for peer, rounds in answers.items():
        rates[peer] = [one["live_steps"] / one["seconds"] for one in rounds]
        counted = statistics.median(one["agent_steps"] / one["seconds"] for one in rounds)
        agents = statistics.median(one["live_steps"] / one["steps"] for one in rounds)
        live = statistics.median(rates[peer])
        rows[peer.name] = live, counted, agents, live * floats[peer] / 1e6
    notes = [*dict.fromkeys(peer.step for peer in answers)]
    if installed := dict.fromkeys(", ".join(peer.requirements) for peer in answers if peer.requirements):
        notes.append(f"Versions: {'; '.join(installed)}.")
    notes += [f"Not measured: {name} ({reason})." for name, reason in reasons.items()]
    if rates:
        notes.insert(0, spread_note(rates.values()))
    return Table("peers", "Peers, one core each", "agent-steps/s", (LIVE, COUNTED, AGENTS, FLOATS), rows, tuple(notes))
