"""Points for the parts of each column, weighed together."""
