"""``echelon league standings``, ``matrix`` and ``history``."""

import pytest

from echelon_train.league.store.registry import League
from train.league.leagues import change, played, saved

WIN, LOSS = (1, 1), (-1, -1)


def cyclic_league(folder):
    """trivial beats novice, novice beats expert, expert beats trivial, each always."""
    league = League.create(folder)
    league.add_scripted("trivial")
    league.add_scripted("expert")
    for number, pair in enumerate([("trivial", "novice"), ("novice", "expert"), ("expert", "trivial")], 1):
        league.record(played(*pair, WIN * 20, number))
    league.rate_matches()
    return league


def test_standings(commands, league):
    lines = commands.lines("standings", league.path)
    assert not any("mispredict" in line or "cycl" in line for line in lines)
    document = commands.json("standings", league.path)
    assert (document["periods"], document["unrated_matches"]) == (1, 0)
    assert (document["anchor"], document["champion"]) == ("novice", None)
    for rank, (standing, shown) in enumerate(zip(league.standings(), document["standings"], strict=True), 1):
        assert (shown["rank"], shown["name"]) == (rank, standing.member.name)
        assert (shown["rating"], shown["deviation"]) == (standing.rating.rating, standing.rating.deviation)
        assert shown["high"] - shown["rating"] == pytest.approx(1.96 * standing.rating.deviation, rel=1e-3)
        assert (shown["games"], shown["score"]) == (standing.games, standing.score)
        assert shown["bradley_terry"]["low"] <= shown["bradley_terry"]["strength"] <= shown["bradley_terry"]["high"]
        assert lines[rank].split()[:3] == [str(rank), shown["name"], "scripted"]
        assert f" {shown['rating']:.0f} ± {shown['high'] - shown['rating']:.0f} " in lines[rank]
    assert next(each for each in document["standings"] if each["name"] == "novice")["bradley_terry"]["high"] == 1500


def test_champion_and_retired_members_are_marked(commands, league, tmp_path):
    member = league.add_checkpoint(saved(tmp_path / "checkpoint"), "past", "quick-fox")
    league.record(played("quick-fox", "novice", WIN * 4, 9))
    league.rate_matches()
    commands.lines("promote", league.path, member.name)
    commands.lines("retire", league.path, "expert")
    lines = commands.lines("standings", league.path)
    assert "  1* quick-fox" in lines[1]
    assert not any("expert" in line for line in lines)
    assert lines[-2].endswith("* champion; 1 retired: --all")
    assert lines[-1] == f"champion: {league.member_policy('quick-fox')}"
    lines = commands.lines("standings", league.path, "--all")
    assert any("- expert" in line for line in lines) and lines[-2].endswith("- retired")
    document = commands.json("standings", league.path, "--all")
    assert document["champion"] == "quick-fox"
    assert document["standings"][0]["checkpoint"] == str(league.member_policy("quick-fox"))
    assert [each["name"] for each in document["standings"] if each["state"] == "retired"] == ["expert"]


def test_a_cycle_is_reported(commands, tmp_path):
    league = cyclic_league(tmp_path / "league")
    for command in ("standings", "matrix"):
        text = commands.text(command, league.path)
        assert "The ratings mispredict 3 pairs: no strengths explain these results." in text
        assert "- novice scores 100.0 % against expert (20 maps), " in text
        for pair in ("trivial beats novice", "novice beats expert", "expert beats trivial"):
            assert pair in text
        document = commands.json(command, league.path)
        assert document["cycle"]["significant"] is True
        assert [pair["explained_by_strengths"] for pair in document["mispredictions"]] == [False] * 3
    league.record(played("novice", "expert", WIN, 9))
    assert "1 match is not rated yet" in commands.text("standings", league.path)


def test_matrix(commands, league):
    order = [each.member.name for each in league.standings()]
    lines = commands.lines("matrix", league.path)
    assert [line.split()[:2] for line in lines[2:5]] == [[str(n), name] for n, name in enumerate(order, 1)]
    document = commands.json("matrix", league.path)
    assert document["members"] == order
    row, column = order.index("novice"), order.index("trivial")
    assert document["score"][row][column] == 0.875
    assert document["score"][row][row] is None
    assert lines[2 + row].split()[2 + column] == "87.5"
    commands.lines("retire", league.path, "expert")
    assert "expert" not in commands.json("matrix", league.path)["members"]
    assert commands.json("matrix", league.path, "--all")["members"] == order


def test_a_league_without_matches(commands, tmp_path):
    league = League.create(tmp_path / "league")
    league.add_scripted("idle")
    assert commands.lines("standings", league.path)[-1] == "before the first rating period; novice anchors the scale"
    shown = commands.json("standings", league.path)["standings"]
    assert [(each["games"], each["score"], each["bradley_terry"]) for each in shown] == [(0, None, None)] * 2
    assert "close no cycle" in commands.lines("matrix", league.path)[-1]
    assert commands.json("matrix", league.path)["games"] == [[0, 0], [0, 0]]
    assert "no rating period is closed yet" in commands.refusal("history", league.path)


def test_history(commands, league):
    for number in range(10, 30):
        league.record(played("novice", "expert", WIN, number))
        league.rate_matches()
    lines = commands.lines("history", league.path)
    assert lines[0].split()[1::2] == ["1", "6", "11", "16", "21"]
    assert lines[-1].endswith("5 of 21 periods, all with --json")
    shown = {
        each["period"]: {name: rating["rating"] for name, rating in each["ratings"].items()}
        for each in commands.json("history", league.path)["history"]
    }
    assert shown == {
        period: {name: rating.rating for name, rating in ratings.items()}
        for period, ratings in league.history().items()
    }
    league.retire("trivial")
    assert "trivial" not in commands.json("history", league.path)["history"][0]["ratings"]
    assert "trivial" in commands.json("history", league.path, "--all")["history"][0]["ratings"]
    for table, key in (("ratings", "period"), ("periods", "number")):
        change(league, f"DELETE FROM {table} WHERE {key} < 20")
    assert commands.lines("history", league.path)[0].split() == ["period", "20", "period", "21"], "a damaged league"
