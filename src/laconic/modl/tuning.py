"""Sizes of the partition searches: how much work is exact, how much is kept, where pooling starts.

None changes what is minimised. Larger values cost time or memory and find the same partitions or
slightly shorter ones; ``tests/modl/test_partition_search.py`` compares both sides of the limits.
"""

from __future__ import annotations

EXACT_WORK = 1 << 21
"""Dynamic programming when V^2 times the width of the table is at most this: about a thousand
values of two classes, a tenth of a second. By convention."""

MOST_FACTORIALS = 1 << 22
"""ln x! is looked up for totals below this (32 MB), by Stirling's series above. By convention."""

REACH = 16
"""How far a cut may move at once, in runs of the merged list. By convention; the test of merging
against the exact search holds with it."""

LEAST_CANDIDATES = 32
"""Cuts that merging leaves to the exact search at least. By convention."""

ENUMERATED = 12
"""All groupings are enumerated up to this number of values: 3^12 subsets of subsets take some
hundredths of a second, each further value three times as long."""

MERGED = 256
"""Greedy merging of pairs starts from at most this number of groups, for its work is their square.
By convention."""

FIRST_PARTS = 48
"""Layers that the sorted search of groups computes first; more follow while a bound allows them.
By convention."""

FOLLOWED = 5
"""Points of the merging path from which single values are moved. By convention."""

WITH_GARBAGE = 8
"""Groupings from which a garbage group is tried, by increasing bound. By convention."""

GRID_ROUNDS = 8
"""Times that the sides of a grid are searched in turn at most; most grids stand still after three.
By convention."""

GRID_STARTS = (2, 4, 8)
"""Equal-frequency parts of the other side from which a grid is searched. By convention."""

ATOMS = 128
"""Fine parts of a column in pairs and trees: their codes fit in a byte."""

SCREENED_ROWS = 20_000
"""Rows that pairs are screened on at most. By convention."""

TRIED_PAIRS = 4
"""Pairs that are searched for each pair asked for, the best of the screening. By convention."""

TREE_ROWS = 100_000
"""Rows that a tree is grown on at most; its leaves are weighed on all. By convention."""

LEAVES = 1024
"""Leaves of a tree before it is pruned, at most; how trees are grown was chosen on the first fold
of the sets of the second table of docs/naive_bayes.md."""

MAX_CATEGORIES = 1_000_000
"""Distinct texts beyond which a column is refused as an identifier. By convention."""

POOLED_VALUES = 2**15
"""Pools of a numeric column that is read in one pass with the others, when it has twice as many
distinct values: one part in 32,768 of the rows is below any granularity worth paying for."""
