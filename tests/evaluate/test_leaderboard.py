import json
import re
import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from echelon_env.evaluate import freeze_suite, leaderboard
from echelon_env.evaluate.leaderboard import format_leaderboard, leaderboard_markdown, make_leaderboard
from echelon_env.evaluate.report import aggregate
from echelon_env.evaluate.submission import Method, SubmissionError
from evaluate.submissions import STAMP, made_submission

MAPS = 12

TABLE = """\
small: suite {suite}, engine eeeeeeeeeeee, opponents 000000000000
verified: {won} of {won} battles won or drawn replayed, all as stated
not ranked: part.json: FAILED to verify: battle 3 of duel against trivial:
  stated won by elimination after 40 decisions, replayed lost and 2 more

scenarios: duel-open, duel

scores in %
method                         actions   interquartile mean                 mean
 1 A method…y long name        sampled    68.1 [63.2, 73.6]    68.8 [64.6, 72.6]
 2 B|[x](y) <b>          deterministic    37.5 [25.0, 47.9]    37.5 [28.7, 47.2]
method                    runs   of single runs
 1 A method…y long name      3     64.6 to 75.0
 2 B|[x](y) <b>              1                -

battles won in %, against
method                 trivial    novice
 1 A meth…long name       70.1      67.4
 2 B|[x](y) <b>           41.7      33.3

battles won in %, in
method               duel-open      duel
 1 A meth…long name       72.2      65.3
 2 B|[x](y) <b>           41.7      33.3

submissions; decisions and CPU minutes of the training are as stated
method                      file    decisions CPU min       actions      results
A metho…ng name         a-0.json   12,345,678      45       sampled {hashes[0]}
A metho…ng name         a-1.json   12,345,678      45       sampled {hashes[1]}
A metho…ng name         a-2.json   12,345,678      45       sampled {hashes[2]}
B|[x](y) <b>              b.json            -       - deterministic {hashes[3]}

[low, high] are intervals of 95 % over the maps, not over training runs.
"""


@pytest.fixture(scope="module")
def suite():
    return freeze_suite("small", ["duel-open", "duel"], ["trivial", "novice"], MAPS)


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """The installed rules are those of the synthetic submissions."""
    monkeypatch.setattr(leaderboard, "stamp", lambda: dict(STAMP))


def drawn(suite, seed, win_rate, scenarios=("duel-open", "duel"), **fields):
    """A submission with random outcomes."""
    rng = np.random.default_rng(seed)

    def outcomes():
        return (2 * (rng.random((MAPS, 2)) < win_rate).astype(int) - 1).tolist()

    return made_submission(suite, {name: [outcomes() for _ in suite.opponents] for name in scenarios}, **fields)


@pytest.fixture
def submissions(suite):
    long = Method("A method with a very long name", url="https://example.org/a", decisions=12_345_678, cpu_minutes=45.0)
    short = Method("B|[x](y) <b>", authors="*B*", hardware="2 <cores>", note="_n_")
    return {
        **{f"runs/a-{seed}.json": drawn(suite, seed, 0.7, method=long, identity={"steps": seed}) for seed in range(3)},
        "b.json": drawn(suite, 5, 0.4, method=short, action_mode="deterministic"),
        "part.json": drawn(suite, 6, 0.9, scenarios=["duel-open"], method=Method("Part")),
    }


def test_the_tables(submissions, suite):
    """As text of 80 columns, as Markdown that shows texts of strangers as they are, and as JSON."""
    failures = {file: [] for file in submissions}
    sentence = "battle 3 of duel against trivial: stated won by elimination after 40 decisions, replayed lost"
    failures["part.json"] = [sentence, "battle 5", "battle 7"]
    document = make_leaderboard(submissions, failures=failures)
    text = format_leaderboard(document)
    hashes = [submission.results_hash[:12] for submission in submissions.values()]
    won = sum(match.wins for file in submissions if file != "part.json" for match in submissions[file].matches)
    assert f"{text}\n" == TABLE.format(suite=suite.hash[:12], hashes=hashes, won=won)
    assert max(map(len, text.splitlines())) == 80
    markdown = leaderboard_markdown(document)
    for line in (
        "| [1 A method with a very long name](https://example.org/a) | sampled |",
        r"| 2 B\|\[x\](y) \<b\> | deterministic |",
        r" \*B\* |",
        "| hardware | note |",
        r"| 2 \<cores\> | \_n\_ |",
        "not ranked: part.json: FAILED to verify: battle 3 of duel",
    ):
        assert line in markdown
    assert "<b>" not in markdown
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    (board,) = document["boards"]
    assert ([each["verified"] for each in board["submissions"]], board["installed"]) == ([True] * 4, True)
    assert [(each["file"], each["verified"]) for each in board["not_ranked"]] == [("part.json", False)]


def rows_of(document, section=0):
    (board,) = document["boards"]
    return board["sections"][section]["rows"]


def test_equal_methods_have_the_same_rank(suite):
    def one(name, trivial, novice):
        pairs = [[(each, each)] * MAPS for each in (trivial, novice)]
        return made_submission(suite, {"duel": pairs, "duel-open": pairs}, method=Method(name))

    tied = {"a.json": one("a", 1, -1), "b.json": one("b", -1, 1), "c.json": one("c", -1, -1), "d.json": one("d", 1, 1)}
    rows = rows_of(make_leaderboard(tied))
    assert [(row["rank"], row["method"]) for row in rows] == [(1, "d"), (2, "a"), (2, "b"), (4, "c")]


def test_figures_of_a_run_are_those_of_its_report(submissions):
    (row,) = rows_of(make_leaderboard({"b.json": submissions["b.json"]}))
    matches = submissions["b.json"].matches
    expected = aggregate(matches, "B|[x](y) <b>")
    for key in ("mean", "iqm"):
        assert row[key] == pytest.approx(expected[key])
    assert row["iqm_of_runs"] == [pytest.approx(row["iqm"]["estimate"])]
    novice = [match for match in matches if match.second == "novice"]
    assert row["wins_against"]["novice"] == sum(match.wins for match in novice) / (4 * MAPS)
    assert row["wins_in"]["duel"] == sum(match.wins for match in matches if match.scenario == "duel") / (4 * MAPS)


def test_action_modes_and_authors_are_different_methods(submissions, suite):
    other = replace(submissions["b.json"], action_mode="sampled", matches=submissions["runs/a-0.json"].matches)
    other = replace(other, matches=tuple(replace(match, first="B|[x](y) <b>") for match in other.matches))
    document = make_leaderboard({"b.json": submissions["b.json"], "sampled.json": other})
    found = [(row["action_mode"], len(row["files"])) for row in rows_of(document)]
    assert found == [("sampled", 1), ("deterministic", 1)]
    assert r" 2 B\|\[x\](y) \<b\> (deterministic) " in leaderboard_markdown(document)
    text = format_leaderboard(
        make_leaderboard({each: drawn(suite, len(each), 0.5, method=Method("PPO", each)) for each in ("A", "Be")})
    )
    assert " PPO (A) " in text and " PPO (Be) " in text


def test_scenarios_can_be_chosen(submissions):
    (section,) = make_leaderboard(submissions, scenarios=["duel-open"])["boards"][0]["sections"]
    assert (section["scenarios"], section["rows"][0]["method"], len(section["rows"])) == (["duel-open"], "Part", 3)
    (board,) = make_leaderboard(submissions, scenarios=["duel"])["boards"]
    assert [each["file"] for each in board["not_ranked"]] == ["part.json"]
    with pytest.raises(SubmissionError, match="expected some of duel, duel-open, got 'battle'"):
        make_leaderboard(submissions, scenarios=["battle"])


def test_every_set_of_completed_scenarios_has_a_section(submissions, suite):
    """A partial file takes nothing from the others."""
    other = drawn(suite, 7, 0.5, scenarios=["duel"], method=Method("Other"))
    document = make_leaderboard({**submissions, "other.json": other})
    (board,) = document["boards"]
    found = {tuple(each["scenarios"]): {row["method"] for row in each["rows"]} for each in board["sections"]}
    whole = {"A method with a very long name", "B|[x](y) <b>"}
    assert found == {
        ("duel-open", "duel"): whole,
        ("duel-open",): whole | {"Part"},
        ("duel",): whole | {"Other"},
    }
    assert board["sections"][0]["scenarios"] == ["duel-open", "duel"]
    assert board["not_ranked"] == []
    parts = make_leaderboard({"part.json": submissions["part.json"], "other.json": other})["boards"][0]["sections"]
    assert [each["scenarios"] for each in parts] == [["duel-open"], ["duel"]]


def test_other_rules_are_ranked_separately(submissions, suite):
    other = drawn(suite, 9, 0.9, stamp={**STAMP, "package": "0.9", "engine_hash": "d" * 64})
    document = make_leaderboard({"old.json": other, **submissions})
    found = [(board["installed"], len(board["sections"][0]["rows"])) for board in document["boards"]]
    assert found == [(True, 2), (False, 1)]
    text = format_leaderboard(document)
    assert "engine dddddddddddd" in text
    assert "\nplayed with echelon-env 0.9: not comparable" in text


def change_details(submission, changed, outcome):
    """The submission with other scores in the first battles with an outcome, `changed` of every match's."""
    matches = []
    for match in submission.matches:
        numbers = [each.number for each in match.battles if each.outcome == outcome][:changed]
        battles = (replace(each, scores=(5.0, 1.0)) if each.number in numbers else each for each in match.battles)
        matches.append(replace(match, battles=tuple(battles)))
    return replace(submission, matches=tuple(matches))


def not_ranked(document):
    (board,) = document["boards"]
    ranked = [file for section in board["sections"][:1] for row in section["rows"] for file in row["files"]]
    return ranked, {each["file"]: (each["why"], each["reason"]) for each in board["not_ranked"]}


def test_one_policy_is_not_several_runs(submissions, suite):
    """The first of the files is ranked, and the others that are no copies of it."""
    one, other = submissions["runs/a-0.json"], submissions["b.json"]
    lost = change_details(one, 99, outcome=-1)  # what is said about lost battles is not verified
    few = change_details(one, 3, outcome=1)
    same = {"weights_sha256": "f" * 64}
    runs = [drawn(suite, seed, 0.5, identity=same) for seed in range(2)]
    weights = "is no further training run of 'made', as it has the same weights as a.json"
    equal = r"is equal in \d+ of the \d+ battles that neither has lost, at most 50% may be, to a.json"
    for first, second, reason in (
        (one, replace(one, method=Method("Other")), "has the same results as a.json"),
        (one, replace(one, identity={"steps": 7}, action_mode="sampled"), "has the same results as a.json"),
        (one, lost, equal),
        (one, few, equal),
        (*runs, weights),
    ):
        found, reasons = not_ranked(make_leaderboard({"a.json": first, "again.json": second, "b.json": other}))
        assert sorted(found) == ["a.json", "b.json"]
        ((why, sentence),) = [reasons.pop("again.json")]
        assert (why, reasons) == ("copy", {})
        assert re.fullmatch(reason, sentence)
    failures = {"a.json": ["battle 3"], "again.json": []}
    document = make_leaderboard({"a.json": one, "again.json": few}, failures=failures)
    assert not_ranked(document) == (["again.json"], {"a.json": ("failed", "FAILED to verify: battle 3")})
    renamed = [replace(one, method=Method(name)) for name in "BC"]
    _, reasons = not_ranked(make_leaderboard({"a": one, "b": renamed[0], "c": renamed[1]}))
    assert reasons == dict.fromkeys("bc", ("copy", "has the same results as a")), "and not as a copy"
    won = made_submission(suite, dict.fromkeys(("duel-open", "duel"), [[(1, 1)] * MAPS] * 2))
    for each in (one, won):  # equal outcomes are no evidence: strong policies win the same battles in different ways
        most = change_details(each, 99, outcome=1)
        assert len(rows_of(make_leaderboard({"a.json": each, "other.json": most}))[0]["files"]) == 2


def test_files_that_are_not_ranked_take_nothing_from_the_others(submissions, suite):
    invalid = {"x/\x1b|bad.json": "expected JSON: \x1b"}
    document = make_leaderboard(submissions, invalid=invalid)
    assert document["boards"] == make_leaderboard(submissions)["boards"]
    assert document["not_ranked"] == [{"file": "x/\x1b|bad.json", "why": "invalid", "reason": "expected JSON: \x1b"}]
    assert "\nnot ranked: ?|bad.json: expected JSON: ?\n" in format_leaderboard(document)
    assert r"not ranked: ?\|bad.json: expected JSON: ?" in leaderboard_markdown(document)
    alone = make_leaderboard({}, invalid=invalid, scenarios=["duel"])
    assert (alone["boards"], alone["not_ranked"]) == ([], document["not_ranked"])
    part = submissions["part.json"]
    cut = replace(part, matches=tuple(replace(match, battles=match.battles[:4]) for match in part.matches))
    text = " ".join(format_leaderboard(make_leaderboard({"cut.json": cut})).split())  # without the ends of lines
    assert "not ranked: cut.json: has completed no scenario: a scenario is ranked only with all of its battles" in text
    assert "NOT VERIFIED: no proof was replayed" in text
    (board,) = make_leaderboard({**submissions, "cut.json": cut})["boards"]
    assert [section["scenarios"] for section in board["sections"]] == [["duel-open", "duel"], ["duel-open"]]
    named = make_leaderboard({"x/\x1b[31m|\n.json": drawn(suite, 1, 0.5), "y": drawn(suite, 1, 0.5)})
    assert "?[31m|?.json" in format_leaderboard(named)
    assert r"| ?\[31m\|?.json |" in leaderboard_markdown(named)


def width(line):
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line
    )


def test_wide_characters_and_many_opponents_keep_the_columns(suite):
    name = "深層強化学習の方法" * 6
    runs = {f"{name}.json": drawn(suite, 1, 0.5, method=Method(name)), "a.json": drawn(suite, 2, 0.5)}
    failed = drawn(suite, 3, 0.5)
    failures = {**{file: [] for file in runs}, f"{name}-2.json": ["x" * 500]}
    text = format_leaderboard(make_leaderboard({**runs, f"{name}-2.json": failed}, failures=failures))
    assert max(map(width, text.splitlines())) == 80
    lines = text.splitlines()
    table = lines[lines.index("scores in %") + 1 :][:3]
    assert {width(line) for line in table} == {80}
    names = ["idle", "random", "trivial", "novice", "competent", "veteran", "expert"]
    text = format_leaderboard(make_leaderboard({"x.json": drawn(replace(suite, opponents=tuple(names)), 0, 0.5)}))
    assert max(map(len, text.splitlines())) <= 80 and all(name in text for name in names)
    assert sum("made " in line for line in text.splitlines()) == 5, "opponents take several blocks"
