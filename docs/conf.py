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
]
myst_enable_extensions = ["dollarmath", "amsmath"]
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "Laconic"
# scikit-learn's inherited docstrings point to labels of its own site
suppress_warnings = ["ref.ref"]
exclude_patterns = ["_build"]
