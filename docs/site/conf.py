"""Sphinx's settings; ``python -m docs.site`` starts Sphinx with them on the pages that it has written."""

from importlib import metadata

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from docs.site.staging import REPOSITORY

project = "Echelon"
author = "the Echelon authors"
copyright = author
release = metadata.version("echelon-env")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
nitpicky = True
# Signatures name types of other libraries, and docstrings put arguments and values into single backticks.
nitpick_ignore_regex = [("py:.*", ".*")]
default_role = "py:obj"
smartquotes_action = "D"  # dashes; quotes and dots are those of code
highlight_language = "text"

# MyST: links to headings work as on a code host; `site:` is an address within the site that is no page.
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": {"url": "{{path}}", "classes": ["battle"]}}
myst_links_external_new_tab = False

# The notebooks are executed before, by `notebooks.py`.
nb_execution_mode = "off"
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "text/html", 0)]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["benchmarl", "tensordict", "torchrl"]  # modules of adapters need them
# Signatures name these unions instead of spelling them out.
_UNIONS = "PolicyLike", "PolicyFunction", "OpponentsLike", "ScenarioLike", "Maps"
autodoc_type_aliases = {name: name for name in _UNIONS}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

SHORT_CELL = 22  # characters

html_theme = "furo"
html_title = f"Echelon {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "footer_icons": [{"name": "Source code", "url": REPOSITORY, "html": "Source code", "class": ""}],
}
pygments_style = "friendly"
pygments_dark_style = "monokai"


class LinkedNames(SphinxTransform):
    """Code in Markdown pages that is a public name with dots, such as ``echelon_env.make_config``, leads to it."""

    default_priority = 400

    def apply(self) -> None:
        """Wrap every such name that is neither a link nor a title."""
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext()
            if isinstance(literal.parent, (nodes.reference, nodes.title, addnodes.pending_xref)):
                continue
            if text.startswith(("echelon_env.", "echelon_train.")) and text.replace(".", "").isidentifier():
                reference = addnodes.pending_xref(
                    "", literal.deepcopy(), refdomain="py", reftype="obj", reftarget=text, refwarn=False,
                    refdoc=self.env.docname,
                )  # fmt: skip
                literal.replace_self(reference)


class ShortCells(SphinxTransform):
    """Marks the cells of tables whose text shall not be broken into lines."""

    default_priority = 400

    def apply(self) -> None:
        """Give numbers with their intervals, and single words, a class."""
        for cell in self.document.findall(nodes.entry):
            if len(cell.astext()) <= SHORT_CELL:
                cell["classes"].append("short")


_docstring: list[str] = []


def _keep(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    _docstring[:] = lines


def _restore(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Undo what napoleon does to the docstring of an attribute: it takes text before a colon for a type."""
    if what in ("attribute", "property"):
        lines[:] = _docstring


def setup(app: Sphinx) -> None:
    """Sphinx calls it."""
    app.add_transform(LinkedNames)
    app.add_transform(ShortCells)
    app.connect("autodoc-process-docstring", _keep, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", _restore, priority=600)
