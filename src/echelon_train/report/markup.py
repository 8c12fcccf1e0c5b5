"""HTML from Python: every text is escaped, unless it is `Html` already."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_VOID = ("br", "col")


class Html(str):
    """Markup, as opposed to a text."""

    __slots__ = ()


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """An element. Children that are no `Html` are texts; None is left out. ``class_`` is the attribute ``class``.

    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    named = (
        f' {name.rstrip("_")}="{html.escape(str(value))}"' for name, value in attributes.items() if value is not None
    )
    opening = f"<{tag}{''.join(named)}>"
    return Html(opening if tag in _VOID else f"{opening}{join(children)}</{tag}>")


def join(parts: Iterable[Any]) -> Html:
    """Parts one after the other."""
    return Html(
        "".join(part if isinstance(part, Html) else html.escape(str(part)) for part in parts if part is not None)
    )


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]], *, name: str = "", **attributes: Any) -> Html:
    """A table that scrolls sideways where it is too wide, with the id `name`.

    Cells are texts, `Html`, or elements ``td`` and ``th`` with attributes. The first of a row is its heading.
    """
    head = element("thead", element("tr", *(element("th", cell, scope="col") for cell in header))) if header else None
    body = element("tbody", *(element("tr", *_cells(row)) for row in rows))
    return element("div", element("table", head, body, id=name or None, **attributes), class_="scroll")


def _cells(row: Sequence[Any]) -> Iterable[Html]:
    for number, cell in enumerate(row):
        if isinstance(cell, Html) and cell.startswith(("<td", "<th")):
            yield cell
        else:
            yield element("td", cell) if number else element("th", cell, scope="row")


def total(name: str) -> Html:
    """The heading of a row that sums up others."""
    return element("th", name, scope="row", class_="total")


def section(title: str, *children: Any) -> Html:
    """A section with its heading; the id is the title with hyphens."""
    return element("section", element("h2", title), *children, id=title.lower().replace(" ", "-"))


def folded(title: str, *children: Any, opened: bool = False) -> Html:
    """A part that opens with a click."""
    return element("details", element("summary", title), *children, open="" if opened else None)


def note(*children: Any) -> Html:
    """A remark."""
    return element("p", *children, class_="note")


def more(count: int, most: int) -> Iterator[Html]:
    """How many of `count` rows are left out, if only the first `most` are shown."""
    if count > most:
        yield note(f"And {count - most:,} more.")


def tiles(facts: Iterable[tuple[str, Any, str]]) -> Html:
    """The most important numbers: (what, the number, a remark)."""
    return element(
        "dl",
        *(
            element("div", element("dt", what), element("dd", number, element("small", remark) if remark else None))
            for what, number, remark in facts
        ),
        class_="tiles",
    )
