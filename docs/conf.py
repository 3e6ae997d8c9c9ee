"""The site of the documentation: `make docs` builds it into out/docs.

Nothing is asked of a network when it is built or read. The reference of commands, scenarios, Python and
crates is made from the code (`reference.py`) while pages are read.
"""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402
import sources  # noqa: E402

project = "Fullpipe"
html_title = "Fullpipe"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_static"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
# Single backquotes in docstrings are code, as in Markdown.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
# Links to pages of others are left as they are; the site itself is complete without them.
html_theme_options = {"source_edit_link": "", "source_view_link": ""}
pygments_style = "friendly"
pygments_dark_style = "native"
# Blocks without a language are shell commands or output.
highlight_language = "text"
copybutton_selector = "div.highlight pre"


def setup(app: Any) -> dict[str, Any]:
    """Adds what is made from the code, and the files of the repository that pages link to."""
    app.connect("source-read", reference.insert)
    app.connect("source-read", sources.rewrite)
    app.connect("build-finished", sources.copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
