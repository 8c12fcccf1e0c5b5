"""Builds the documentation site: ``python -m docs.site``, or ``make site``.

It writes a source tree (the repository's pages, executed notebooks, generated pages) into a temporary folder, runs
Sphinx with warnings as errors, adds the pages of the gallery's battles, and checks all internal links.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs import gallery
from docs.site import check, environments, notebooks, reference, staging

HERE = Path(__file__).parent


def build(site: Path, mode: str = "short") -> list[str]:
    """Build the site, and put it in place of an earlier one if nothing is wrong. Returns what is wrong, a line each.

    `mode` says how notebooks are executed, see `notebooks.MODES`.
    """
    if site.exists() and not (site / "searchindex.js").exists():
        return [f"{site}: exists, and is no site"]
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "source"), Path(folder, "site")
        staging.stage(source)
        environments.stage(source)
        reference.stage(source)
        notebooks.stage(source, mode)
        options = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(HERE), "-d", str(Path(folder, "doctrees"))]
        if subprocess.run([sys.executable, "-m", "sphinx", *options, str(source), str(built)]).returncode:
            return ["Sphinx has warnings, see above"]
        gallery.write_pages(built / "battles")
        moving = f"{gallery.MOVING_SCENARIO}-moving.webp"
        shutil.copyfile(gallery.GALLERY / moving, built / "battles" / moving)
        problems = check.check(built)
        if not problems:
            shutil.rmtree(site, ignore_errors=True)
            shutil.copytree(built, site)
    return problems


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--notebooks", choices=notebooks.MODES, default="short", help="how notebooks are executed")
    default = staging.ROOT / "build" / "site"
    parser.add_argument("site", nargs="?", type=Path, default=default, help="folder of the site (default: build/site)")
    args = parser.parse_args()
    problems = build(args.site, args.notebooks)
    print("\n".join(problems) or f"{len([*args.site.rglob('*.html')])} pages: {args.site}/index.html")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
