"""Sphinx configuration."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

from laconic import __version__

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


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
