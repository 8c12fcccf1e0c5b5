"""The floors of the benchmark: what is counted is what happened; no times are asserted."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from echelon_env import BattleEngine, MapPool, make_config
from echelon_env.engine.state import COLUMN, IN_SIGHT
from echelon_env.layout.actions import Action


@pytest.fixture(scope="module")
def floors():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        return importlib.import_module("benchmarks.floors")


def sample_of(floors, engine, actions):
    """A sample of the decision that is taken with some actions (B, M, A)."""
    before = floors.copied(engine.state)
    engine.step(actions)
    return floors.take_sample(engine, before)


@pytest.mark.slow  # it compiles kernels of its own
def test_a_duel_needs_what_two_mechs_need(floors):
    config = make_config("duel")
    terms = floors.measure(floors.record(config, "novices", 31, MapPool.generate(config, 2)))
    counts = {term: count for term, (count, _, _) in terms.items()}
    # no mech dies in the first 31 decisions, 7.75 s, of a duel
    assert counts["movement: pairs of mechs"] == counts["sensors: pairs of enemies"] == 1
    assert 0 < counts["movement: turns"] <= 10 and 0 < counts["movement: moves"] <= 10
    assert counts["sensors: columns of sight"] >= 1
    assert 0 < counts["observations: cells"] <= 2 * floors.EGO_SIDE**2


@pytest.mark.long
def test_standing_still_needs_no_moves_and_no_cells(floors):
    engine = BattleEngine("duel", 1)
    engine.reset([3])
    actions = np.zeros((1, 2, engine.action_dim), np.float32)
    engine.step(actions)
    sample = sample_of(floors, engine, actions)
    for kernel in (floors.floor_kernels.turns, floors.floor_kernels.moves, floors.floor_kernels.cells):
        assert kernel(engine.tables, *sample)[0] == 0


def test_a_line_is_walked_to_what_blocks_it(floors):
    kernels = floors.floor_kernels
    columns = np.zeros(100, COLUMN).view(np.recarray)
    columns["opaque"][10 * 4 + 6] = 0b0100  # at (6, 4), 2 to 3 m high
    assert kernels.walk(columns, 10, 1.5, 4.5, 2.5, 8.5, 4.5, 2.5) == (46, 6)
    assert kernels.walk(columns, 10, 8.5, 4.5, 2.5, 1.5, 4.5, 2.5) == (46, 3)
    assert kernels.walk(columns, 10, 1.5, 4.5, 1.5, 8.5, 4.5, 1.5) == (-1, 8)
    assert kernels.walk(columns, 10, 6.5, 4.5, 2.5, 8.5, 4.5, 2.5) == (-1, 3)  # it begins in that voxel
    assert kernels.still_blocks(columns, 10, 46, 1.5, 3.0, 2.5, 8.5, 5.5, 2.5)
    assert not kernels.still_blocks(columns, 10, 46, 1.5, 3.0, 3.5, 8.5, 5.5, 3.5)
    assert not kernels.still_blocks(columns, 10, 46, 1.5, 1.0, 2.5, 8.5, 2.5, 2.5)


def test_lines_and_features_agree_with_what_the_engine_sees(floors):
    engine = BattleEngine("skirmish", 2)
    engine.reset([1, 2])
    actions = np.zeros((2, 10, engine.action_dim), np.float32)
    actions[..., Action.THROTTLE] = 1.0
    found = []
    for _ in range(40):
        sample = sample_of(floors, engine, actions)
        columns, _ = floors.floor_kernels.lines(engine.tables, *sample)
        mechs = engine.state.mechs
        enemies = (mechs["team"][:, :, None] == 0) & (mechs["team"][:, None, :] == 1)
        living = (mechs["alive"][:, :, None] == 1) & (mechs["alive"][:, None, :] == 1)
        for b, m, o in zip(*np.nonzero(enemies & living & (mechs["shutdown"] == 0)[:, :, None]), strict=True):
            assert (sample.work.blockers[b, m, o] < 0) == (engine.state.visible[b, m, o] == IN_SIGHT)
            found.append(engine.state.visible[b, m, o] == IN_SIGHT)
        assert columns >= (enemies & living).sum()
        rows = {name: int((mechs[name][mechs["alive"] == 1] >= 0).sum()) for name in ("contacts", "intel")}
        mates = sum(
            n * (n - 1) for team in (0, 1) for n in ((mechs["team"] == team) & (mechs["alive"] == 1)).sum(axis=1)
        )
        features = floors.features_of_others(sample)
        assert features == 23 * rows["contacts"] + 13 * rows["intel"] + 14 * mates
        written, _ = floors.floor_kernels.entity_rows(engine.tables, *sample)
        assert written == 23 * rows["contacts"]
    assert 0 < sum(found) < len(found)


def test_rates_are_weighted_medians(floors):
    assert floors.rate([(10, 100), (100, 500), (0, 30), (10, 20)]) == 5.0
    assert floors.rate([(0, 30)]) == 0.0
