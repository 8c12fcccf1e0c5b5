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
    league.close_period()
    return league


def large_league(folder, members=24, periods=7):
    """Policies with the longest names, each of which beats the next."""
    league = League.create(folder)
    names = [f"{number:02}-{'x' * 29}" for number in range(members)]
    kinds = ["main", "main_exploiter", "league_exploiter", "past"]
    for number, name in enumerate(names):
        league.add_checkpoint(saved(folder.parent / name, number), kinds[number % 4], name)
    for period in range(periods):
        for place in range(members - 1):
            league.record(played(names[place], names[place + 1], WIN, period * members + place))
        league.close_period()
    return league


def test_standings(commands, league):
    lines = commands.lines("standings", league.path)
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


def test_standings_without_matches(commands, tmp_path):
    League.create(tmp_path / "league").add_scripted("idle")
    lines = commands.lines("standings", tmp_path / "league")
    assert lines[-1] == "before the first rating period; novice anchors the scale"
    document = commands.json("standings", tmp_path / "league")
    assert [(each["games"], each["score"], each["bradley_terry"]) for each in document["standings"]] == [
        (0, None, None),
        (0, None, None),
    ]
    assert "-" in commands.lines("matrix", tmp_path / "league")[2]


def test_unrated_matches_are_reported(commands, league):
    league.record(played("novice", "expert", WIN, 9))
    assert "1 match is not rated yet" in commands.lines("standings", league.path)[-1]


def test_champion_and_retired_members_are_marked(commands, league, tmp_path):
    member = league.add_checkpoint(saved(tmp_path / "checkpoint"), "past", "quick-fox")
    league.record(played("quick-fox", "novice", WIN * 4, 9))
    league.close_period()
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


def test_ratings_that_lag_behind_the_games_are_reported(commands, tmp_path):
    league = League.create(tmp_path / "league")
    league.add_scripted("expert")
    for number in range(3):
        league.record(played("expert", "novice", WIN * 60, number + 1))
    league.close_period()
    text = commands.text("standings", league.path)
    assert "mispredict 1 pair: the ratings have not caught up with the games, whose Bradley-Terry" in text
    (pair,) = commands.json("standings", league.path)["mispredictions"]
    assert pair["first"] == "expert" and pair["explained_by_strengths"] is True


def test_of_many_mispredicted_pairs_a_few_are_reported(commands, tmp_path, monkeypatch):
    monkeypatch.setattr("echelon_train.league.analysis._MOST_PAIRS", 1)
    lines = commands.lines("standings", cyclic_league(tmp_path / "league").path)
    assert "- and 2 more, see 'echelon league matrix --json'" in lines


def test_a_league_without_cycles_has_no_warning(commands, league):
    text = "\n".join(commands.lines("standings", league.path))
    assert "mispredict" not in text and "cyclic" not in text


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
    assert sum(document["nash"]["weights"]) == pytest.approx(1)
    assert document["nash"]["filled_pairs"] == 0
    commands.lines("retire", league.path, "expert")
    assert "expert" not in commands.json("matrix", league.path)["members"]
    assert commands.json("matrix", league.path, "--all")["members"] == order


def test_matrix_counts_pairs_without_games(commands, league):
    league.add_scripted("idle")
    text = "\n".join(commands.lines("matrix", league.path))
    assert "3 of 6 pairs have not played: predicted by the ratings" in text
    assert commands.json("matrix", league.path)["nash"]["filled_pairs"] == 3


def test_history(commands, league):
    league.record(played("novice", "trivial", WIN, 9))
    league.close_period()
    lines = commands.lines("history", league.path)
    assert lines[0].split() == ["period", "1", "period", "2"]
    document = commands.json("history", league.path)
    expected = league.history()
    assert [each["period"] for each in document["history"]] == [1, 2]
    for each in document["history"]:
        ratings = expected[each["period"]]
        assert {name: shown["rating"] for name, shown in each["ratings"].items()} == {
            name: rating.rating for name, rating in ratings.items()
        }
    commands.lines("retire", league.path, "trivial")
    assert "trivial" not in commands.json("history", league.path)["history"][0]["ratings"]
    assert "trivial" in commands.json("history", league.path, "--all")["history"][0]["ratings"]


def test_a_long_history_is_thinned_out(commands, league):
    for _ in range(20):
        league.close_period()
    lines = commands.lines("history", league.path)
    assert lines[0].split()[1::2] == ["1", "6", "11", "16", "21"]
    assert lines[-1].endswith("5 of 21 periods, all with --json")
    assert len(commands.json("history", league.path)["history"]) == 21


def test_a_history_without_one_of_its_periods(commands, league):
    league.close_period()
    for table, key in (("ratings", "period"), ("periods", "number")):
        change(league, f"DELETE FROM {table} WHERE {key} = 1")
    assert commands.lines("history", league.path)[0].split() == ["period", "2"]


def test_no_history_yet(commands, tmp_path):
    League.create(tmp_path / "league")
    assert "no rating period is closed yet" in commands.refusal("history", tmp_path / "league")


@pytest.mark.long
def test_large_leagues_fit_on_a_terminal(commands, tmp_path):
    league = large_league(tmp_path / "league")
    for command in ("standings", "matrix", "history"):
        lines = commands.lines(command, league.path)
        assert len(lines) > 24


@pytest.mark.parametrize("command", [["standings"], ["matrix"], ["history"]])
def test_pictures(command, commands, league, tmp_path):
    picture = tmp_path / "picture.png"
    commands.lines(*command, league.path, "--picture", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "exists already" in commands.refusal(*command, league.path, "--picture", picture)
    assert "is not a folder" in commands.refusal(*command, league.path, "--picture", tmp_path / "nowhere" / "a.png")
    message = commands.refusal(*command, league.path, "--picture", tmp_path / "picture.txt")
    assert "picture.txt: expected the name of a picture that ends in one of ." in message
    assert not (tmp_path / "picture.txt").exists()


def test_two_pictures(commands, league, tmp_path):
    picture, nash = tmp_path / "m.pdf", tmp_path / "nash.svg"
    message = commands.refusal("matrix", league.path, "--picture", picture, "--nash-picture", picture)
    assert "expected another name for each picture" in message and not picture.exists()
    commands.lines("matrix", league.path, "--nash-picture", nash, "--picture", picture)
    assert nash.stat().st_size > 0 and picture.stat().st_size > 0
    assert "exists already" in commands.refusal("matrix", league.path, "--nash-picture", nash)


def test_the_picture_of_the_curve(commands, league, tmp_path):
    picture = tmp_path / "curve.svg"
    league.add_checkpoint(saved(tmp_path / "checkpoint"), "main", "main-1")
    commands.lines("standings", league.path, "--curve-picture", picture)
    assert picture.stat().st_size > 0
    assert "exists already" in commands.refusal("standings", league.path, "--curve-picture", picture)
    scripted = League.create(tmp_path / "scripted")
    message = commands.refusal("standings", scripted.path, "--curve-picture", tmp_path / "none.svg")
    assert "no member is a policy" in message
    assert not (tmp_path / "none.svg").exists()
