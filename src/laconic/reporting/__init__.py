"""The report: one plain dict, rendered as a page, as Markdown and in the terminal."""
