"""Builds the documentation site: ``python docs/site/build.py``, or ``make site``.

It writes the source tree (the repository's pages, executed notebooks, generated pages) into ``build/site-source``, runs
Sphinx with warnings as errors, adds the pages of the gallery's battles, and checks all internal links.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent), str(HERE)]  # benchmarks; generate, gallery; the modules beside this file

import check  # noqa: E402
import environments  # noqa: E402
import gallery  # noqa: E402
import notebooks  # noqa: E402
import reference  # noqa: E402
import staging  # noqa: E402


def build(site: Path, mode: str = "short") -> list[str]:
    """Build the site into a folder that is replaced. Returns what is wrong with it: each line has a page and a problem.

    `mode` says how notebooks are executed, see `notebooks.MODES`.
    """
    source = site.with_name(f"{site.name}-source")
    for folder in (site, source):
        shutil.rmtree(folder, ignore_errors=True)
    staging.stage(source)
    environments.stage(source)
    reference.stage(source)
    notebooks.stage(source, mode)
    command = ["-W", "--keep-going", "-q", "-b", "html", "-c", HERE, "-d", source / ".doctrees", source, site]
    finished = subprocess.run([sys.executable, "-m", "sphinx", *map(str, command)])
    if finished.returncode:
        return [f"{site}: Sphinx has warnings, see above"]
    gallery.write_pages(site / "battles")
    moving = f"{gallery.MOVING_SCENARIO}-moving.webp"
    shutil.copyfile(gallery.GALLERY / moving, site / "battles" / moving)
    return check.check(site)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notebooks", choices=notebooks.MODES, default="short", help="how notebooks are executed")
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "build" / "site", help="folder of the site")
    args = parser.parse_args()
    problems = build(args.site, args.notebooks)
    print("\n".join(problems) or f"{len([*args.site.rglob('*.html')])} pages: {args.site}/index.html")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
