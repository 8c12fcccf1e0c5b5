"""Copies the pages of the repository into the source tree of the site, with links that lead to their places there."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]

ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "docs/gallery/README.md": "environments/index.md",
    "docs/guide/README.md": "guide/index.md",
    "docs/site/index.md": "index.md",
}
"""Pages of the repository with another place in the site."""

SHELVES = "guide", "reference", "results"
"""Folders of pages."""
PICTURES = {"pictures": "png", "gallery": "webp"}
"""Folders of pictures, with their suffix."""

_CODE_OR_LINK = re.compile(r"```.*?```|`[^`\n]+`|(?<=\]\()[^()\s]+(?=\))", re.DOTALL)


def place(path: str) -> str | None:
    """Where a file of the repository is in the site's source tree; None: nowhere."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    folder, name = posixpath.split(path)
    suffix = posixpath.splitext(name)[1]
    if suffix == ".ipynb":
        return f"tutorials/{name}"
    shelf = folder.removeprefix("docs").removeprefix("/")
    in_site = shelf in ("", *SHELVES) if suffix == ".md" else shelf in PICTURES
    return posixpath.join(shelf, name) if folder.startswith("docs") and in_site else None


def link(target: str, page: str) -> str:
    """A link of a page of the repository, as the site has it.

    What is not in the site is a link to the repository. A replay of the gallery is a link to its page.
    """
    if re.match(r"\w+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    start = posixpath.dirname(place(page) or "")
    if path.startswith("docs/gallery/") and path.endswith(".replay"):
        return f"site:{posixpath.relpath(f'battles/{posixpath.basename(path)[:-7]}.html', start or '.')}"
    found = place(path)
    if not (ROOT / path).exists():
        raise SystemExit(f"{page}: the link {target} leads nowhere")
    if found is None:
        return f"{REPOSITORY}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}"
    return posixpath.relpath(found, start or ".") + (f"#{anchor}" if anchor else "")


def relinked(text: str, page: str) -> str:
    """A page's Markdown with the links of the site; code stays as it is."""
    return _CODE_OR_LINK.sub(lambda match: match[0] if match[0][0] == "`" else link(match[0], page), text)


def stage(source: Path) -> None:
    """Write the Markdown pages and the pictures into the site's source tree."""
    pages = [*DOCS.glob("*.md"), *(page for shelf in SHELVES for page in (DOCS / shelf).glob("*.md"))]
    for path in (*pages, *(ROOT / name for name in ELSEWHERE if not name.endswith("README.md"))):
        page = path.relative_to(ROOT).as_posix()
        write(source / str(place(page)), relinked(path.read_text(encoding="utf-8"), page))
    for folder, suffix in PICTURES.items():
        os.makedirs(source / folder, exist_ok=True)
        for picture in (DOCS / folder).glob(f"*.{suffix}"):
            shutil.copyfile(picture, source / folder / picture.name)


def write(path: Path, text: str) -> None:
    """Write a text file, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
