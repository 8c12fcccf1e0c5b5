"""The floors of the benchmark: what is counted is what happened, and the sums are right; no times are asserted."""

import importlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from echelon_env import BattleEngine
from echelon_env.engine.state import COLUMN, IN_SIGHT
from echelon_env.layout.actions import Action


@pytest.fixture(scope="module")
def floors():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        return importlib.import_module("benchmarks.floors")


@pytest.mark.slow  # it compiles kernels of its own
def test_the_terms_of_a_duel_add_up(floors):
    report = floors.measure("duel", 31)
    for phase, us in report["floor_us"].items():
        assert us == pytest.approx(sum(term["us"] for term in report["terms"] if term["phase"] == phase))
    assert all(term["us"] == pytest.approx(term["count"] * term["ns"] / 1000) for term in report["terms"])
    counts = report["counts"]
    # no mech dies in the first 31 decisions, 7.75 s, of a duel
    assert counts["mechs"] == 2 and counts["mech-ticks"] == 10 and counts["ticks"] == 5
    assert counts["pairs of enemies"] == counts["lines of sight"] == 1
    assert 0 < counts["turns"] <= 10 and 0 < counts["moves"] <= 10
    assert 0 < counts["columns under boxes"] <= 16 * counts["footprint passes"]  # a medium covers at most 4 x 4
    assert counts["lines still blocked"] <= counts["lines blocked before"] <= 1
    assert counts["columns of sight"] >= 1 - counts["lines still blocked"]
    assert counts["rows of comm"] > 0 and counts["rows of squad"] == 0


def test_too_few_decisions_are_refused(floors):
    with pytest.raises(ValueError, match="decisions: expected at least 6, got 5"):
        floors.measure("duel", 5)


def test_standing_still_needs_no_columns(floors):
    engine = BattleEngine("duel", 1, decision_repeat=1)
    engine.reset([3])
    engine.step(np.zeros((1, 2, engine.action_dim), np.float32))
    before = engine.state.mechs.copy()
    engine.step(np.zeros((1, 2, engine.action_dim), np.float32))
    counts = Counter()
    floors.floor_counts.count_movement(engine.tables, before, engine.state.mechs, counts)
    assert counts["mech-ticks"] == 2
    assert counts["turns"] == counts["moves"] == counts["columns under boxes"] == counts["boxes compared"] == 0


def test_a_line_is_walked_to_what_blocks_it(floors):
    kernels = floors.floor_kernels
    columns = np.zeros(100, COLUMN)
    columns["opaque"][10 * 4 + 6] = 0b0100  # at (6, 4), 2 to 3 m high
    assert kernels.walk(columns, 10, 1.5, 4.5, 2.5, 8.5, 4.5, 2.5) == (46, 6)
    assert kernels.walk(columns, 10, 8.5, 4.5, 2.5, 1.5, 4.5, 2.5) == (46, 3)
    assert kernels.walk(columns, 10, 1.5, 4.5, 1.5, 8.5, 4.5, 1.5) == (-1, 8)
    assert kernels.walk(columns, 10, 6.5, 4.5, 2.5, 8.5, 4.5, 2.5) == (-1, 3)  # it begins in that voxel
    assert kernels.still_blocks(columns, 10, 46, 1.5, 3.0, 2.5, 8.5, 5.5, 2.5)
    assert not kernels.still_blocks(columns, 10, 46, 1.5, 3.0, 3.5, 8.5, 5.5, 3.5)
    assert not kernels.still_blocks(columns, 10, 46, 1.5, 1.0, 2.5, 8.5, 2.5, 2.5)


def test_lines_agree_with_what_the_engine_sees(floors):
    engine = BattleEngine("skirmish", 2)
    engine.reset([1, 2])
    actions = np.zeros((2, 10, engine.action_dim), np.float32)
    actions[..., Action.THROTTLE] = 1.0
    found = []
    for _ in range(40):
        engine.step(actions)
        sample = floors.take_sample(engine, None)
        columns, _ = floors.floor_kernels.lines(engine.tables, *sample, 1)
        mechs = engine.state.mechs
        enemies = (mechs["team"][:, :, None] == 0) & (mechs["team"][:, None, :] == 1)
        living = (mechs["alive"][:, :, None] == 1) & (mechs["alive"][:, None, :] == 1)
        for b, m, o in zip(*np.nonzero(enemies & living & (mechs["shutdown"] == 0)[:, :, None]), strict=True):
            assert (sample.work.blockers[b, m, o] < 0) == (engine.state.visible[b, m, o] == IN_SIGHT)
            found.append(engine.state.visible[b, m, o] == IN_SIGHT)
        assert columns >= (enemies & living).sum()
    assert 0 < sum(found) < len(found)


def test_rates_are_weighted_medians(floors):
    samples = [{"turns": (10, 100)}, {"turns": (100, 500)}, {"turns": (10, 20)}]
    assert floors.rates(samples)["turns"] == 5.0
    assert floors.rates(samples)["moves"] == 0.0
