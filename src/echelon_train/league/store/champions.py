"""Champions: the record of promotions."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass, field

from echelon_train.league.store.database import check_room
from echelon_train.league.store.members import now


@dataclass(frozen=True)
class Promotion:
    """The start of a champion's reign, and the comparison that led to it."""

    id: int  # in the order of the reigns
    member: str
    previous: str | None  # the previous champion; None for the first one
    validation: str | None  # uuid of the match of the two; None for the first champion
    period: int  # the rating period after which they were compared
    k: float  # a score is the rating - k x the deviation
    score: float  # of the member, points
    previous_score: float | None  # of the previous champion, points
    promoted_at: str = field(default_factory=now)  # UTC


def read_promotions(connection: sqlite3.Connection) -> list[Promotion]:
    """All promotions in their order."""
    rows = connection.execute(
        "SELECT r.id, m.name, p.name, r.validation, r.period, r.k, r.score, r.previous_score, r.promoted_at"
        " FROM promotions r JOIN members m ON m.id = r.member LEFT JOIN members p ON p.id = r.previous ORDER BY r.id"
    )
    return [Promotion(*row) for row in rows]


def read_champion(connection: sqlite3.Connection) -> str | None:
    """The name of the member that was promoted last; None before the first promotion."""
    row = connection.execute(
        "SELECT m.name FROM promotions r JOIN members m ON m.id = r.member ORDER BY r.id DESC LIMIT 1"
    ).fetchone()
    return None if row is None else str(row[0])


def insert_promotion(connection: sqlite3.Connection, promotion: Promotion) -> None:
    """Add a promotion to a database. Raises LeagueError, with nothing added, if the league is full."""
    check_room(connection, "promotions")
    connection.execute(
        "INSERT INTO promotions VALUES"
        " (?, (SELECT id FROM members WHERE name = ?), (SELECT id FROM members WHERE name = ?), ?, ?, ?, ?, ?, ?)",
        astuple(promotion),
    )
