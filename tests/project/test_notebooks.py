"""The notebooks of examples/ run from top to bottom, in short, without warnings; no outputs are in git."""

import re

import nbformat
import pytest
from docs.site.notebooks import EXAMPLES, NAMES, SHORT, execute, read, with_parameters

COLAB = "https://colab.research.google.com/github/echelon-env/echelon-env/blob/main/examples"
MAX_BYTES = 200_000


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_stored_small_and_without_outputs(name):
    notebook = read(name)
    nbformat.validate(notebook)
    assert (EXAMPLES / f"{name}.ipynb").stat().st_size < MAX_BYTES
    assert [cell.id for cell in notebook.cells] == [f"cell-{i:02}" for i in range(len(notebook.cells))]
    for cell in code_cells(notebook):
        assert not cell.outputs and cell.execution_count is None


@pytest.mark.parametrize("name", NAMES)
def test_first_cell_installs_only_what_is_missing(name):
    """It is the only one with a magic command; where all is there, it runs none."""
    setup, *others = [cell.source for cell in code_cells(read(name))]
    assert "%pip install" in setup and "github.com/echelon-env/echelon-env" in setup
    assert not any(re.search(r"^\s*[%!]", source, re.MULTILINE) for source in others)
    if name != "1_first_steps":
        exec(setup.replace("%pip", "raise AssertionError #"), {})


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    text = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert f"{COLAB}/{name}.ipynb" in targets
    for target in targets:
        assert target.startswith("https://") or (EXAMPLES / target).exists(), target


def test_parameters_are_those_of_the_notebooks():
    """A name that the parameters' cell does not set would shorten nothing."""
    assert SHORT.keys() == set(NAMES) - {"1_first_steps"}
    for name, parameters in SHORT.items():
        (cell,) = [cell for cell in read(name).cells if "parameters" in cell.metadata.get("tags", [])]
        assert parameters.keys() <= set(re.findall(r"^(\w+)", cell.source.replace(", ", "\n"), re.MULTILINE))


LEAGUE = "4_self_play_league"  # three minutes: it starts processes that train and play


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == LEAGUE else pytest.mark.long) for name in NAMES]
)
def test_notebook_runs(name, tmp_path):
    notebook = with_parameters(read(name), SHORT.get(name))
    execute(notebook, tmp_path)
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    # the first run on a machine says that it compiles; everything else on stderr is a warning
    complaints = [output.text for output in outputs if output.get("name") == "stderr"]
    assert all(text == "echelon_env: compiling kernels (first run only)\n" for text in complaints), complaints
    assert any("image/png" in output.get("data", {}) for output in outputs)
