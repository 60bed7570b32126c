"""Sphinx configuration."""

import re
import sys
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

from laconic import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks import stored  # noqa: E402

project = "Laconic"
author = "The Laconic developers"
copyright = "2026, the Laconic developers"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "Laconic"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_math_renderer = "mathml"  # which browsers draw themselves: nothing is fetched
html_theme_options = {
    "secondary_sidebar_items": {"papers/*": [], "*": ["page-toc"], "gallery/**": ["page-toc"]}
}
html_sidebars = {"*": []}  # pages without pages below them
# scikit-learn's inherited docstrings point to labels of its own site
suppress_warnings = ["ref.ref"]
exclude_patterns = ["_build"]
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/questions", "../examples/models"],
    "gallery_dirs": ["gallery/questions", "gallery/models"],
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),  # texts of objects say less than what is printed
}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _displayed(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f"<p>{convert(node.astext(), display='block')}</p>")
    raise nodes.SkipNode


# ---- measured numbers: each block has a link to the run that printed it -----------------------


def _place(name: str) -> str:
    return re.sub(r"\W+", "-", name)


def _write_runs(app: Any) -> None:
    """The page of all stored runs: command, commit, versions, and the whole text."""
    lines = [
        "# Where the numbers come from",
        "",
        "Every measured number of the guides carries the name of its run, and stands in what that "
        "run printed: here is the whole text. A commit is the last one that changed the library "
        "before the run. `benchmarks/printed` holds the texts, `make bench` prints them again.",
        "",
    ]
    for name, own in sorted(stored.read().items()):
        versions = ", ".join(f"{k} {v}" for k, v in own.versions.items())
        text = escape("\n".join(own.printed)).replace("\n", "&#10;")  # no blank line ends the HTML
        lines += [
            f"<details><summary>{name}: <code>{escape(own.command)}</code>, "
            # a link to what is inside opens it
            f'{own.commit}, {own.date}</summary><p id="{_place(name)}">{versions}</p>'
            f"<pre>{text}</pre></details>",
            "",
        ]
    page = DOCS / "generated" / "runs.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n".join(lines), encoding="utf-8")


def _link_runs(app: Any, name: str, source: list[str]) -> None:
    """A small link in the place of every ``<!-- run: ... -->``, before its block."""
    runs = stored.read()

    def link(mark: re.Match[str]) -> str:
        links = []
        for name in re.split(r"\s*;\s*", mark["names"]):
            own = runs.get(name)
            said = escape(f"{own.command} ({own.commit}, {own.date})" if own else "not stored yet")
            where = f"generated/runs.html#{_place(name)}"
            links.append(f'<a href="{where}" title="{said}">run</a>')
        return f'<div class="run">{" ".join(links)}</div>\n'

    source[0] = stored.MARK.sub(link, source[0])


def setup(app: Any) -> None:
    app.connect("builder-inited", _write_runs)
    app.connect("source-read", _link_runs)
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
