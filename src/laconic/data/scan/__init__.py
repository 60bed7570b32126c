"""Rows that do not fit in memory or on one machine: blocks of files, a cluster, one verb."""
