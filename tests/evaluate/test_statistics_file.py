import json
import re

import pytest

from echelon_env import ConfigError, make_config
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.evaluate.battle_totals import HEAT_CELLS, BattleTotals, OpponentTotals
from echelon_env.evaluate.statistics_file import (
    MAX_BYTES,
    MAX_NAME,
    EvaluationTotals,
    Period,
    StatisticsError,
    StatisticsFile,
    read_statistics,
    write_statistics,
)

CONFIG = make_config("duel", max_steps=40, terrain={"size": 36})


@pytest.fixture(scope="module")
def file():
    """Statistics of battles, as of a run with two periods and an evaluation."""
    parts = []
    for number, level in enumerate(("novice", "expert", "trivial")):
        totals = BattleTotals()
        seeds = [evaluation_seed(number, 0)]
        play_match(baseline("veteran"), baseline(level), CONFIG, seeds, scenario="duel", totals=totals)
        parts.append(totals)
    periods = Period(0, 100, parts[0]), Period(100, 250, parts[1])
    return StatisticsFile("my run", 300, periods, (EvaluationTotals(250, "duel", parts[2]),))


def test_a_file_is_read_as_it_was_written(file, tmp_path):
    """Its numbers are rounded; `test_battle_totals` compares those of exact documents."""
    path = tmp_path / "statistics.json"
    write_statistics(path, file)
    again = read_statistics(path)
    assert again.to_dict() == file.to_dict()
    assert (again.player, again.steps, again.total().battles) == ("my run", 300, 4)
    for one, other in zip(file.training, again.training, strict=True):
        assert other.totals.sums("own") == pytest.approx(one.totals.sums("own"), rel=1e-8)


def test_names_are_printable(tmp_path):
    totals = BattleTotals({"a\nb\ud800": OpponentTotals({}, {"": {"mechs": 1.0}}, {"x" * 2000: {"mechs": 2.0}})})
    write_statistics(tmp_path / "s.json", StatisticsFile("\x1b[31m", 0, (), (EvaluationTotals(0, "duel", totals),)))
    again = read_statistics(tmp_path / "s.json")
    (opponent,) = again.evaluations[0].totals.opponents.items()
    assert (again.player, opponent[0]) == ("?[31m", "a?b?")
    assert opponent[1].own == {"?": {"mechs": 1.0}}
    assert opponent[1].enemy == {"x" * MAX_NAME: {"mechs": 2.0}}


def put(document, path, value):
    *parents, last = path
    for key in parents:
        document = document[key]
    document[last] = value


OPPONENTS = ("training", 0, "totals", "opponents")
NOVICE, MEDIUM = (*OPPONENTS, "novice"), (*OPPONENTS, "novice", "own", "medium")
MAPS = ("training", 0, "totals", "heatmaps", "36")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "echelon-replay", "expected the format 'echelon-statistics' of version 2, got 'echelon-replay'"),
        (("other",), 2, "the document: expected an object with the keys"),
        (("player",), "a\x1b", "player: expected a printable name"),
        (("steps",), -1, "steps: expected an integer from 0"),
        (("training",), [{}] * 9, "training: expected a list of at most 8"),
        (("training", 1, "last"), 99, "training: expected periods in the order of time"),
        (("evaluations",), [None] * 65, "evaluations: expected a list of at most 64"),
        (("evaluations", 0, "scenario"), 3, "evaluations.0.scenario: expected a printable name"),
        (OPPONENTS, [], "training.0.totals.opponents: expected an object"),
        ((*NOVICE, "wins"), 10**400, "opponents.novice.wins: expected a number from 0"),
        ((*NOVICE, "own"), {str(number): {} for number in range(1001)}, "own: expected an object of at most 1000"),
        ((*MEDIUM, "mechs"), float("nan"), "expected finite numbers, got NaN"),
        ((*MEDIUM, "deaths"), -1, "own.medium.deaths: expected a number from 0"),
        ((*MEDIUM, "reward"), -1e16, "own.medium.reward: expected a number from -1e"),
        ((*MEDIUM, "x" * 1025), 1, "own.medium: expected a printable name of at most 1024"),
        (MEDIUM, {str(n): 1 for n in range(2001)}, "own.medium: expected an object of at most 2000"),
        (MAPS[:-1], {"0": {}}, "heatmaps: expected edges of maps in m, got '0'"),
        ((*MAPS, "own"), {}, "heatmaps.36.own: expected an object with the keys"),
        ((*MAPS, "own", "deaths"), [[0] * 32] * 31, f"own.deaths: expected {HEAT_CELLS} rows of {HEAT_CELLS} numbers"),
        ((*MAPS, "own", "deaths", 3, 3), None, "own.deaths: expected 32 rows of 32 numbers"),
    ],
)
def test_what_is_not_statistics_is_refused_with_the_place(file, tmp_path, path, value, message):
    document = file.to_dict()
    put(document, path, value)
    target = tmp_path / "bad.json"
    target.write_text(json.dumps(document))
    with pytest.raises(StatisticsError, match=re.escape(message)) as raised:
        read_statistics(target)
    assert str(raised.value).startswith(str(target)) and len(str(raised.value)) < len(str(target)) + 600
    assert isinstance(raised.value, ConfigError)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[" * 100_000, "expected statistics as JSON"),
        (b"[]", "the document: expected an object"),
        (b" " * (MAX_BYTES + 1), f"larger than {MAX_BYTES:,} bytes"),
        (b"[" + b"{}," * (1 << 22) + b"{}]", "expected at most 4,194,304 values"),
    ],
    ids=["deep", "list", "large", "many"],
)
def test_other_files_are_refused(tmp_path, data, message):
    (tmp_path / "bad.json").write_bytes(data)
    with pytest.raises(StatisticsError, match=message):
        read_statistics(tmp_path / "bad.json")


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_statistics(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        write_statistics(tmp_path / "none" / "statistics.json", StatisticsFile("x", 0))
