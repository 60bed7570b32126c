"""Numbers of the scorecards that are choices, not mathematics, each with its reason."""

BEAM = 12
"""Supports kept by the beam search at each size."""

GROWN = 24
"""Items by which each of them is extended, the steepest first."""

POLISHED = 12
"""Supports of the beam whose points are searched exactly before the proof starts."""

TARGETS = (0.5, 0.3, 0.2, 0.14, 0.1, 0.07, 0.05, 0.035, 0.02, 0.01, 0.005, 0.002)
"""Gaps that the proof aims at one after the other: what is left out of a coarse proof has a bound
that holds, and the limits of points found for it are narrow."""

NODE_STEPS = 60
"""Gradient steps of the relaxation of a node, at most: its bound holds wherever it stops."""

MERGE_AT = 0.8
"""A node whose items left are fewer than this part of its base gets a base of its own, in which
patterns that these items do not tell apart are one."""

MERGED_CELLS = 20_000_000
"""Numbers of merged patterns that are kept for further nodes, 160 MB."""

NODE_TOL = 2e-4
"""Part of the incumbent's loss within which a relaxation is solved."""

LATTICE_NODES = 20_000
"""Nodes of the search of points in one support before its bound is taken as it stands."""

TIE = 1e-9
"""Part of the loss of the empty card by which two losses are the same."""

SHRUNK = 0.05
"""Part by which the gap must have shrunk to be reported again. By convention."""

SIDE_STEPS = 12
"""Gradient steps in a trial of a narrower limit of one item."""


LEAST_SHARE = 0.01
"""A condition that holds, or fails, for a smaller share of the rows is not offered; half of what
the sparse rules ask for, because a card is proven and not cross-validated."""

PRIOR_ROWS = 16.0
"""Prior rows of the loss. Held-out log loss, mean over heart, breast, german, hepatitis, pima and
sonar, five folds of another seed than those of docs/scorecard.md, with 0, 4, 8 and 16 rows: 0.4676,
0.4495, 0.4393 and 0.4260 with five items, 0.4837, 0.4479, 0.4354 and 0.4249 with eight. 32 still
help the smallest tables, and cost the cleanest of them (breast, 0.1156 to 0.1208)."""

WARM_SHARE = 0.5
"""Part of the time that the first card may take, so that something is left for its proof."""

POOL_SHARE = 0.25
"""Time for the pool of nearly best cards, as a part of that of the search (it comes on top)."""

MOST_POOL = 60
"""Cards in the pool, at most: more are not looked through."""

MOST_PATTERNS = 4_000
"""Patterns for which least cost is handed to the integer program; above, the bound is that of
deciding each pattern by itself."""

INTERVAL = 0.95
"""Confidence of the intervals of risk by total; by convention."""
