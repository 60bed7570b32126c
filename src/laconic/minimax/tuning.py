"""Numbers of the minimax rules that are choices, not mathematics, each with its reason."""

DEFAULT_CELLS = 50
"""Clusters or leaves when ``n_profiles`` is None (the table of docs/minimax.md)."""

QUANTILE_SLACK = 1e-12
"""Relative rounding between a sum of weights and a count of rows."""

MAX_CELLS = 2**28
"""Largest table of profiles by classes that is built: two gibibytes of floats."""

FEW_KEYS = 2**20
"""Keys of blocks that wait before they are merged: eight mebibytes; by convention."""

MOST_VALUES = 2**15
"""Values of a numeric column of a scan beyond which neighbours are pooled before bins are cut."""

PROFILES_AT_ONCE = 65_536
"""Profiles whose costs are held at a time by the plain formulas; by convention."""

LEVEL = 0.3
"""Level of the bundle, as a share of the gap: best or close to it between 0.15 and 0.5
(bench_minimax)."""

SHRINKS = 0.9
"""An empty level set that leaves more than this share of the gap was found so by rounding."""

MOST_LP_CELLS = 2_000_000
"""Profiles x classes x decisions of a linear program: beyond, HiGHS needs hours, the bundle
seconds."""

BUCKETS = 4096
"""Buckets of break points of two classes, of which one is sorted; by convention."""

MATCHING_ROUNDS = 500
"""Rounds of proportional fitting of posteriors to class shares, at most; by convention."""

MATCHED = 1e-10
"""Distance of mean posteriors to class shares at which the fitting ends."""
