"""The measurements of scripted players run as docs/opponents.md says."""

import subprocess
import sys

import pytest
from benchmarks.machine import ROOT


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "row"),
    [
        ("opponents.py --seconds 0.01 --rounds 1", "expert, handicapped"),
        ("opponents.py --handicaps --battles 2", "fire_rate"),
        ("navigation.py --scenarios duel-open --maps 1", "duel-open"),
    ],
)
def test_a_measurement_runs(command, row):
    script, *options = command.split()
    arguments = [sys.executable, str(ROOT / "benchmarks" / script), *options]
    found = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    assert sum(line.startswith(row) for line in found.stdout.splitlines()) == 1
