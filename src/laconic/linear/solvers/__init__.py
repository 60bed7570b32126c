"""Solvers of linear problems: kink Newton in memory and on a scan, matrix-free, multinomial."""
