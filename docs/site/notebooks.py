"""Executes the notebooks of ``examples/`` for the site: in short, or with the parameters that they have."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from docs.site.staging import ROOT, place, relinked

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))
MODES = ("short", "full", "none")
TIMEOUT = 3600  # s, for a cell
QUIET = ["--IPKernelApp.log_level=ERROR"]

TINY = {
    "battle.max_steps": "12", "battles": "4", "maps": "2", "eval_battles": "8", "ppo.n_steps": "8",
    "ppo.batch_size": "32", "ppo.n_epochs": "1", "ppo.chunk": "8", "network.width": "16", "network.head": "16",
}  # fmt: skip

SHORT: dict[str, dict[str, Any]] = {
    "2_train_a_policy": {
        "STEPS": 128, "MORE_STEPS": 64, "IMITATION_STEPS": 64, "EXPERT_STEPS": 64, "BATTLES": 4,
        "SETTINGS": TINY | {"eval_every": "64"},
    },
    "3_evaluate_and_watch": {"STEPS": 64, "BATTLES": 8, "SETTINGS": TINY},
    "4_self_play_league": {
        "IMITATION_STEPS": 64, "MINUTES": 5, "MORE_MINUTES": 5, "EXPLOIT_STEPS": 64, "BATTLES": 4,
        "RULES": [
            "--exploiter", 0, "--steps", 128, "--maps", 1,
            "--until-rd", 340,
        ],
        "SETTINGS": TINY | {"league.stage": "64"},
    },
}  # fmt: skip
"""Parameters with which each notebook is short; the first one is as it is."""

NOTES = {
    "short": "> **The outputs on this page are those of a short run**, with the parameters of the cell below: the "
    "policies have hardly learned anything. Run the notebook, or build the site with `make site NOTEBOOKS=full`, for "
    "the results in the text.",
    "none": "> This page was built without running the notebook.",
}


def read(name: str) -> Any:
    """A notebook of the examples."""
    return nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)


def with_parameters(notebook: Any, parameters: dict[str, Any] | None) -> Any:
    """The notebook with a cell after the one tagged `parameters`, as papermill adds it."""
    if parameters:
        (number,) = [i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
        source = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
        notebook.cells.insert(number + 1, nbformat.v4.new_code_cell(source))
    return notebook


def execute(notebook: Any, folder: Path) -> None:
    """Run all cells in a folder, with one thread."""
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=TIMEOUT, resources=resources, extra_arguments=QUIET)
    client.execute(env={**os.environ, "OMP_NUM_THREADS": "1"})


def stage(source: Path, mode: str) -> None:
    """Write the notebooks with their outputs into the site's source tree. `mode` is one of `MODES`."""
    for name in NAMES:
        notebook = with_parameters(read(name), SHORT.get(name) if mode == "short" else None)
        if mode != "none":
            with tempfile.TemporaryDirectory() as folder:
                execute(notebook, Path(folder))
        if mode in NOTES and (name in SHORT or mode == "none"):
            notebook.cells.insert(1, nbformat.v4.new_markdown_cell(NOTES[mode]))
        page = f"examples/{name}.ipynb"
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = relinked(cell.source, page)
        path = source / str(place(page))
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
