"""Sphinx configuration."""

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
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "Laconic"
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
