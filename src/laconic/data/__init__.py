"""Rows in, sums out: columns of any frame, blocks of rows, value by class tables."""
