"""Settings of Sphinx, the role that links to source files, and the pages of these."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import ember_ml  # noqa: E402

project = "Ember ML"
author = "The Ember ML authors"
project_copyright = author
release = version = ember_ml.__version__

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["extra"]
source_suffix = {".md": "markdown"}
highlight_language = "text"
pygments_style = "a11y-high-contrast-light"
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False
# Annotations are names of Python and of typing, which have no pages here.
nitpick_ignore_regex = [("py:.*", ".*")]

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
# Links to files that are no pages; ``resolve_sources`` gives them their address.
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": None}

html_theme = "pydata_sphinx_theme"
html_title = "Ember ML"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# Sphinx reads results of the search with ``fetch``, which browsers refuse for files; search.js shows one line of each.
html_show_search_summary = False
html_search_scorer = str(Path(__file__).with_name("static") / "scorer.js")
html_domain_indices = False
html_use_index = False
# What a program prints is not copied, and the button would hide some of it in a narrow window.
copybutton_selector = "div[class*=highlight-]:not(.highlight-text) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
html_theme_options = {
    "logo": {"text": "Ember ML"},
    "navbar_start": ["navbar-logo", "version"],
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button-field"],
    "header_links_before_dropdown": 6,
    "collapse_navigation": True,
    "show_nav_level": 1,
    "navigation_depth": 4,
    "show_toc_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
# The theme of the system, until the reader chooses one.
html_context = {"default_mode": "auto"}
html_sidebars: dict[str, list[str]] = {"index": [], "search": [], "_source/**": []}

_FOLDER = "_source"
_REPEATED = ("Example", "Dtypes", "Engines", "Gradient", "See also", "Source")


def _address(app: Sphinx, docname: str, target: str) -> str:
    """Relative address of the page of a source file, or of a file that the site has as it is."""
    path, _, line = target.partition(":")
    up = "../" * docname.count("/")
    if path not in _sources(app):
        return up + path
    return f"{up}{_FOLDER}/{path}.html" + (f"#L-{line}" if line else "")


def _sources(app: Sphinx) -> list[str]:
    found: list[str] = json.loads((Path(app.srcdir) / "sources.json").read_text(encoding="utf-8"))
    return found


def resolve_sources(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give links to files their addresses."""
    for node in doctree.findall(nodes.reference):
        if node.get("refuri", "").startswith("source:"):
            node["refuri"] = _address(app, docname, node["refuri"].removeprefix("source:"))


def leave_out_of_search(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Keep sections that every generated page has out of the index of the search, where they would be hits of all."""
    if "/" in docname:
        for section in doctree.findall(nodes.section):
            if section[0].astext() in _REPEATED:
                section["classes"].append("no-search")


def source_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()
) -> Any:
    """``{source}`` of a path and a line: a link to the page of that file."""
    return [nodes.reference(rawtext, "", nodes.literal(text, text), refuri=f"source:{text}", internal=True)], []


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each source file that others link to."""
    formatter = HtmlFormatter(cssclass="highlight", linenos="inline", lineanchors="L", anchorlinenos=True)
    for path in _sources(app):
        text = (ROOT / path).read_text(encoding="utf-8")
        try:
            lexer = get_lexer_for_filename(path)
        except ClassNotFound:
            lexer = TextLexer()
        body = f"<h1>{path}</h1>\n{highlight(text, lexer, formatter)}"
        yield f"{_FOLDER}/{path}", {"title": path, "body": body}, "page.html"


def search_results(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Load what the page of the search needs."""
    if pagename == "search":
        app.add_js_file("summaries.js")
        app.add_js_file("search.js")


def write_summaries(app: Sphinx, exception: Exception | None) -> None:
    """Write the line that the results of the search show of each page, as a script, which browsers load from disk."""
    if exception is None:
        text = (Path(app.srcdir) / "summaries.json").read_text(encoding="utf-8")
        (Path(app.outdir) / "_static" / "summaries.js").write_text(f"const SUMMARIES = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all of this to Sphinx."""
    app.config.html_extra_path = [str(Path(app.srcdir) / "extra")]
    app.add_role("source", source_role)
    app.connect("doctree-resolved", resolve_sources)
    app.connect("doctree-resolved", leave_out_of_search)
    app.connect("html-collect-pages", source_pages)
    app.connect("html-page-context", search_results)
    app.connect("build-finished", write_summaries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
