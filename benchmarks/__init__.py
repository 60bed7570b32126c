"""Ratios to peers, measured in one process; `make bench` runs them all."""
