"""Reports as a reader of HTML sees them."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

_VOID = {"meta", "link", "br", "col", "img"}


class Parsed(HTMLParser):
    """The tables, charts and texts of a report. Fails for tags that are not closed in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tables: dict[str, list[list[str]]] = {}
        self.charts: dict[str, dict] = {}
        self.frames: list[dict[str, str]] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []  # tag, name, value
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self._chart: dict | None = None
        self._texts: list[str] = []
        self.feed(self.source)
        self.close()
        assert self._open == []
        self.text = " ".join(" ".join(self._texts).split())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "table":
            self._rows = self.tables.setdefault(found.get("id", f"table {len(self.tables)}"), [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        elif tag == "figure":
            self._chart = json.loads(found["data-chart"]) if "data-chart" in found else {}
        elif tag == "figcaption":
            self._caption = ""
        elif tag == "iframe":
            self.frames.append(found)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        if tag == "small" and "figcaption" in self._open:
            pass
        elif tag == "figcaption":
            self.charts[self._caption.strip()] = self._chart
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] not in ("script", "style"):
            self._texts.append(data)
        if "td" in self._open or "th" in self._open:
            self._rows[-1][-1] += data
        if self._open and self._open[-1] == "figcaption":
            self._caption += data

    def lines(self, title: str) -> dict[str, tuple[list[float], list[float]]]:
        """The lines of a chart by label: (x, y)."""
        return {line["label"]: (line["x"], line["y"]) for line in self.charts[title]["lines"]}

    def column(self, table: str, heading: str) -> dict[str, str]:
        """The cells of a table's column by the rows' headings."""
        header, *rows = self.tables[table]
        return {row[0]: row[header.index(heading)] for row in rows}

    @property
    def loaded(self) -> list[str]:
        """Addresses in the page that a browser would load."""
        names = ("src", "srcset", "href", "xlink:href", "data", "action", "poster", "background")
        found = [value for _, name, value in self.attributes if name in names]
        return [value for value in found if value and not value.startswith(("#", "data:"))]

    @property
    def policy(self) -> str:
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', self.source)
        return policy


def number(text: str) -> float:
    """The number at the start of a cell."""
    return float(re.match(r"[-+]?[\d,.]+", text)[0].replace(",", ""))
