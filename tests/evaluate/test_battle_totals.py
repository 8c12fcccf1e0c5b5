import copy
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env.evaluate.battle_totals import (
    BINS,
    HEAT_CELLS,
    HEAT_MAPS,
    OTHERS,
    RESULTS,
    BattleTotals,
    OpponentTotals,
    by_weapon,
    measures,
    message_entropies,
    parts_of,
    sum_of,
)
from echelon_env.evaluate.statistics_file import EvaluationTotals, Period, StatisticsFile
from echelon_env.layout.actions import COMM_DIM

NAMES = ("mechs", "damage_dealt", "weapon/laser/hits", "reward/zone")
NUMBERS = st.integers(0, 2**40).map(float)  # whole numbers: their sums are exact
SUMS = st.dictionaries(st.sampled_from(NAMES), NUMBERS, max_size=4)
CLASSES = st.dictionaries(st.sampled_from(["scout", "heavy"]), SUMS, max_size=2)
OPPONENTS = st.builds(OpponentTotals, st.dictionaries(st.sampled_from(RESULTS), NUMBERS, max_size=3), CLASSES, CLASSES)
MAPS = st.integers(0, 9).map(lambda number: np.full((2, len(HEAT_MAPS), HEAT_CELLS, HEAT_CELLS), float(number)))
TOTALS = st.builds(
    BattleTotals,
    st.dictionaries(st.sampled_from(["novice", "expert", OTHERS]), OPPONENTS, max_size=3),
    st.dictionaries(st.sampled_from([48, 64]), MAPS, max_size=2),
)


def plain(totals):
    """The totals as values to compare, without sums of 0."""
    opponents = {
        name: ({key: each for key, each in part.results.items() if each}, part.own, part.enemy)
        for name, part in totals.opponents.items()
    }
    return opponents, {size: maps.tolist() for size, maps in totals.heatmaps.items()}


@settings(max_examples=40)
@given(TOTALS, TOTALS, TOTALS)
def test_merging_is_associative_and_commutative_and_changes_no_part(one, two, three):
    before = copy.deepcopy((one, two, three))
    left = BattleTotals.merged([BattleTotals.merged([one, two]), three])
    right = BattleTotals.merged([one, BattleTotals.merged([two, three])])
    backwards = BattleTotals.merged([three, two, one])
    assert plain(left) == plain(right) == plain(backwards)
    assert [*map(plain, (one, two, three))] == [*map(plain, before)]
    assert plain(BattleTotals.merged([one])) == plain(one)


@settings(max_examples=40)
@given(TOTALS)
def test_opponents_and_classes_sum_up(totals):
    for side in ("own", "enemy"):
        whole = totals.sums(side)
        assert whole == sum_of(totals.sums(side, name) for name in totals.opponents)
        assert whole == sum_of(totals.by_class(side).values())
    folded = copy.deepcopy(totals)
    folded.fold("novice")
    assert "novice" not in folded.opponents
    assert folded.sums("own") == totals.sums("own")
    assert folded.results() == totals.results()
    assert folded.battles == totals.battles


@settings(max_examples=40)
@given(TOTALS)
def test_a_file_keeps_all_sums(totals):
    file = StatisticsFile("run", 3, (Period(1, 2, totals),), (EvaluationTotals(2, "duel", totals),))
    again = StatisticsFile.from_dict(json.loads(json.dumps(file.to_dict(exact=True))))
    for found in (again.training[0].totals, again.evaluations[0].totals, again.total()):
        assert found.results() == totals.results()
        for side in ("own", "enemy"):
            expected = totals.sums(side)
            assert found.sums(side) == {name: value for name, value in expected.items() if value}
        assert {size: maps.tolist() for size, maps in found.heatmaps.items()} == plain(totals)[1]


def test_means_and_rates():
    sums = {
        "mechs": 4.0, "alive_seconds": 200.0, "zone_seconds": 50.0, "seeing_seconds": 20.0, "distance_seconds": 300.0,
        "damage_dealt": 80.0, "shots": 10.0, "hits": 4.0, "deaths": 3.0, "reward": -2.0, "weapon/laser/shots": 10.0,
        "weapon/laser/hits": 4.0, "weapon/laser/untargeted": 3.0,
        "weapon/a/b/damage": 80.0, "death/weapon/a/b": 2.0, "death/hazard": 1.0,
    }  # fmt: skip
    found = measures(sums)
    expected = {
        "alive_seconds": 50.0, "zone_share": 0.25, "seeing_share": 0.1, "distance": 15.0, "damage_dealt": 20.0,
        "accuracy": 0.4, "deaths": 0.75, "return": -0.5, "kills": 0.0, "message_entropy": None,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert by_weapon(sums) == {
        "laser": {"shots": 10.0, "hits": 4.0, "damage": 0.0, "kills": 0.0, "untargeted": 3.0},
        "a/b": {"shots": 0.0, "hits": 0.0, "damage": 80.0, "kills": 0.0, "untargeted": 0.0},
    }
    assert parts_of(sums, "death") == {"weapon/a/b": 2.0, "hazard": 1.0}
    assert set(measures({}).values()) == {None}


def test_the_entropy_of_messages():
    sums = {"messages": 8.0, "message/0/3": 8.0}  # one bin: no entropy
    sums |= {f"message/1/{each}": 1.0 for each in range(BINS)}  # all bins alike
    sums |= {f"message/{channel}/{each}": 4.0 for channel in range(2, COMM_DIM) for each in (0, 7)}
    entropies = message_entropies(sums)
    assert entropies == pytest.approx([0.0, math.log(BINS), *[math.log(2.0)] * (COMM_DIM - 2)])
    assert measures(sums)["message_entropy"] == pytest.approx(np.mean(entropies))
    assert message_entropies({"messages": 0.0}) == []
