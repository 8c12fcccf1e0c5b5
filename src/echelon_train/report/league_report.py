"""The report of a league."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from echelon_env.evaluate.estimates import map_scores, score_interval
from echelon_env.evaluate.tables import percent, plural
from echelon_train.config.league import RUNS_FOLDER
from echelon_train.league.analysis import Analysis, analyse, warnings
from echelon_train.league.exploitability import exploitability
from echelon_train.league.playing.replay import record
from echelon_train.league.plots import rating_curve, rating_history
from echelon_train.league.ratings.glicko2 import format_rating
from echelon_train.league.ratings.payoffs import Payoffs
from echelon_train.league.store.registry import League, Standing
from echelon_train.report.charts import embed
from echelon_train.report.exploitability import exploitability_section
from echelon_train.report.format import interval
from echelon_train.report.league_runs import learners, read_learners
from echelon_train.report.markup import Html, element, note, section, table, tiles
from echelon_train.report.page import Page, write
from echelon_train.report.replays import Embedded, embed_replay, replays_section
from echelon_train.report.statistics import statistics_sections
from echelon_train.runs.charts import style
from echelon_train.runs.exploitability import EXPLOITABILITY_FILE

MOST_MEMBERS = 40  # of the matrix
_DARK = 0.32  # distance from an even score beyond which a cell has white text


@dataclass(frozen=True)
class _League:
    """A league as read, with the members to show, the highest rating first."""

    league: League
    analysis: Analysis
    ranked: Sequence[Standing]
    retired: int  # that are not shown
    games: Payoffs  # among the first of them


def write_league_report(path: Path, out: Path, *, replays: int = 6, retired: bool = False) -> None:
    """Write the report of a league as one HTML file; an existing one is replaced.

    It has up to so many `replays`: a battle of the newest match of each pairing. The champion's pairings come first,
    then those with a policy, then the others; each by the rank of the weaker member. `retired` shows retired members as
    well.

    Raises LeagueError if the folder holds no league, or a damaged one, and OSError.
    """
    found = _read(path, retired)
    shown = [*_replays(found, replays)]
    training, problems = read_learners(path)
    sections = [
        section("Standings", *_standings(found)),
        section("Scores", *_matrix(found)),
        section("History", *_history(found)),
        section("Champions", *_champions(found.league)),
        exploitability_section(sorted((path / RUNS_FOLDER).glob(f"*/{EXPLOITABILITY_FILE}"))),
        section("Learners", *learners(training, problems)),
        *statistics_sections([(run.name, [run.path]) for run in training]),
        replays_section(shown),
    ]
    page = Page(
        title=f"League {path.resolve().name}",
        lead=tiles(_facts(found)),
        sections=sections,
        replays=shown,
    )
    write(out, page)


def _read(path: Path, retired: bool) -> _League:
    league = League.open(path)
    standings = league.standings()
    ranked = [each for each in standings if retired or each.member.state == "active"]
    analysis = analyse(league)
    games = analysis.payoffs.among([each.member.name for each in ranked[:MOST_MEMBERS]])
    hidden = len(standings) - len(ranked)
    return _League(league, analysis, ranked, hidden, games)


def _facts(found: _League) -> Iterator[tuple[str, Any, str]]:
    champion = found.league.champion()
    if champion is not None:
        yield "champion", champion.name, format_rating(found.analysis.ratings[champion.name])
    policies = sum(each.member.weights_sha256 is not None for each in found.ranked)
    yield "members", len(found.ranked), f"{policies} policies; {found.retired} retired are not shown"
    games = int(found.analysis.payoffs.games.sum()) // 2
    yield "maps played", f"{games:,}", "each from both sides"
    unrated = found.league.unrated_matches()
    yield "rating periods", len(found.league.periods()), f"{plural(unrated, 'match', 'matches')} not rated yet"


def _standings(found: _League) -> Iterator[Html]:
    champion, exploited = found.league.champion(), exploitability(found.league)
    rows = []
    for rank, each in enumerate(found.ranked, 1):
        name, rating = each.member.name, each.rating
        strength = found.analysis.strength(name)
        rows.append(
            [
                f"{rank} {name}{' ★' if champion is not None and champion.name == name else ''}",
                each.member.kind + (", retired" if each.member.state == "retired" else ""),
                format_rating(rating),
                "-" if strength is None else "{:.0f} [{:.0f}, {:.0f}]".format(*strength),
                f"{each.games:,}",
                percent(each.score),
                "-" if name not in exploited else interval(*dataclasses.astuple(exploited[name])),
            ]
        )
    header = [
        "member",
        "kind",
        "rating",
        "Bradley-Terry",
        "maps",
        "score, %",
        "exploiters, %",
    ]
    yield table(header, rows, name="standings", class_="second-left")
    yield note(
        f"★ champion. {found.league.settings.anchor} anchors the scale. Ratings (Glicko-2) and Bradley-Terry strengths "
        "have 95 % intervals; 100 points more are an expected score of 64 %. Exploiters: the score of those that "
        "trained against the member, from its weights."
    )
    for sentence in warnings(found.analysis, "'echelon league matrix --json'"):
        yield element("p", sentence, class_="warning")


def _matrix(found: _League) -> Iterator[Html]:
    """The mean score of every pair."""
    games = found.games
    framed = {frozenset((pair.first, pair.second)) for pair in found.analysis.mispredictions}
    rows = []
    for i, name in enumerate(games.members):
        cells = [_cell(games, i, j, frozenset((name, other)) in framed) for j, other in enumerate(games.members)]
        rows.append([f"{i + 1} {name}", *cells])
    header = ["score in % of row against column", *(str(place) for place in range(1, len(rows) + 1))]
    yield table(header, rows, name="matrix", class_="matrix")
    played, pairs = int(games.played.sum()) // 2, len(rows) * (len(rows) - 1) // 2
    yield note(
        f"Numbers of columns are those of rows; below a score its 95 % interval. {played} of "
        f"{plural(pairs, 'pair')} have played. Framed: the games contradict the ratings."
    )
    if len(found.ranked) > MOST_MEMBERS:
        yield note(f"The {MOST_MEMBERS} members with the highest ratings of {len(found.ranked)}.")


def _cell(games: Payoffs, i: int, j: int, framed: bool) -> Html:
    if i == j:
        return element("td", class_="self")
    score, low, high = (float(each[i, j]) for each in (games.score, games.low, games.high))
    if np.isnan(score):
        return element("td", "-", class_="none")
    colour = to_hex(colormaps["RdBu"](score))
    ink = ";color:#fff" if abs(score - 0.5) > _DARK else ""
    return element(
        "td",
        f"{percent(score)} ",
        element("small", f"{100 * low:.0f}–{100 * high:.0f}"),
        style=f"background:{colour}{ink}",
        class_="framed" if framed else None,
        title=f"{games.members[i]} against {games.members[j]}: {plural(int(games.games[i, j]), 'map')}",
    )


def _history(found: _League) -> Iterator[Html]:
    names = {each.member.name for each in found.ranked[:MOST_MEMBERS]}
    history = found.league.history(names)
    members = [each.member for each in found.ranked[:MOST_MEMBERS]]
    shown = []
    with style():
        if history:
            figure = rating_history(history)
            lines = list(figure.axes[0].get_lines())
            shown.append(embed(figure, "ratings after each rating period", lines, remark="± one deviation", wide=True))
        if any(member.kind != "scripted" for member in members):
            figure = rating_curve(members, {each.member.name: each.rating for each in found.ranked})
            remark = "a line joins a policy to its parent"
            shown.append(embed(figure, "lineage: ratings over the decisions of training", [], remark=remark, wide=True))
    yield (
        element("div", *shown, class_="pair")
        if shown
        else note("No rating period is closed yet, and no policy has joined.")
    )


def _champions(league: League) -> Iterator[Html]:
    promotions = league.promotions()
    if not promotions:
        yield note("No member has been promoted yet: echelon league promote.")
        return
    rows = []
    for each in reversed(promotions):
        score = "-"
        if each.validation is not None:
            found = score_interval({None: map_scores(league.match(each.validation).match)})
            score = interval(found.estimate, found.low, found.high)
        above = "-" if each.previous_score is None else f"{each.previous_score:.0f}"
        rows.append(
            [
                f"{each.id} {each.member}",
                each.previous or "-",
                score,
                f"{each.score:.0f}",
                above,
                each.period,
                each.promoted_at,
            ]
        )
    header = [
        "champion",
        "after",
        "validation match, score %",
        "conservative score",
        "that of the one before",
        "period",
        "since",
    ]
    yield table(header, rows, name="champions")


def _replays(found: _League, most: int) -> Iterator[Embedded]:
    """A battle of the newest match of each pairing, in the order that `write_league_report` says."""
    ranks = {each.member.name: rank for rank, each in enumerate(found.ranked)}
    games = found.analysis.payoffs
    pairs = [
        (games.members[i], games.members[j])
        for i, j in np.argwhere(np.triu(games.played)).tolist()
        if games.members[i] in ranks and games.members[j] in ranks
    ]
    champion = found.league.champion()
    policies = {each.member.name for each in found.ranked if each.member.weights_sha256 is not None}

    def order(pair: Sequence[str]) -> tuple[int, list[int]]:
        first = champion is not None and champion.name in pair
        kind = 0 if first else 1 if policies.intersection(pair) else 2
        return kind, sorted((ranks[name] for name in pair), reverse=True)

    pairs.sort(key=order)
    for place, pair in enumerate(pairs[:most]):
        played = found.league.matches(*pair, last=1)[0]
        match, battle = played.match, played.match.battles[0]
        title = f"{match.first} against {match.second}"
        score = score_interval({None: map_scores(match)})
        remark = (
            f"Battle {battle.number} of match {played.uuid[:8]} in {match.scenario}, {played.played_at}; in this match "
            f"{match.first} scored {interval(score.estimate, score.low, score.high)} %."
        )
        yield embed_replay(title, remark, partial(_record, found.league, played.uuid), opened=not place)
    if most and len(pairs) > most:
        yield Embedded(note(f"{most} of {len(pairs)} pairings that have played; --replays N shows more."))


def _record(league: League, uuid: str) -> Any:
    return record(league, uuid, 0)[0]
