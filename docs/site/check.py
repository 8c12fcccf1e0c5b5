"""Checks a built site: every internal link leads to a file and an anchor, and no page loads anything from elsewhere."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
_NOT_LOADED = {"canonical", "search", "index", "next", "prev", "author", "copyright"}


class _Page(HTMLParser):
    """The anchors and links of a page. Each link is (address, whether the browser loads it by itself)."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := given.get(name)))
        for name in ("href", "src"):
            if address := given.get(name):
                loaded = (tag, name) in _LOADED and given.get("rel") not in _NOT_LOADED
                self.links.append((address, loaded))


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path, path: Path) -> list[str]:
    """What is wrong with the links of a page."""
    found = []
    for address, loaded in _read(path).links:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            if loaded and parts.scheme != "data":
                found.append(f"loads {address} from elsewhere")
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.is_relative_to(site) or not target.is_file():
            found.append(f"{address}: no such file")
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _read(target).anchors:
            found.append(f"{address}: no such anchor")
    return [f"{path.relative_to(site)}: {problem}" for problem in dict.fromkeys(found)]


def check(site: Path) -> list[str]:
    """All problems of a site's pages."""
    _read.cache_clear()
    site = site.resolve()
    return [problem for path in sorted(site.rglob("*.html")) for problem in problems(site, path)]
