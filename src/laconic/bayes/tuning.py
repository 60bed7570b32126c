"""Numbers of the naive Bayes that were chosen, not derived; the paper's own are in ``descent``."""

from __future__ import annotations

WORKING_SET = 512
"""Variables whose Hessian is formed at once; the others wait for the next iteration. By convention:
a Hessian of that size takes a few hundredths of a second to minimise."""

RELATIVE_GAP = 1e-8
"""Certified gap at which the convex solver stops, relative to the loss of the prior alone. By
convention: far below what a test set can tell, and some digits above rounding."""

NEWTON_PRICE = 4
"""Passes over the rows of one Newton iteration, in iterations of the paper's search: both spend
the same budget of passes. By count (value and slope, Hessian, one or two trial points)."""

NEWTON_STEPS = 50
"""Newton iterations of one descent of the neighbourhood search (power < 1), at most. By
convention."""

FIRST_NEIGHBOURHOOD = 0.01
"""Half-width of the first neighbourhood, for which the paper gives no value: its first step, so
that a restart begins no farther from the best point than one step may go."""

STREAM_GROWTH = 1.5
"""Partitions are found again when the stream has grown by this factor since the last time: all
refreshes together then cost three times the last one. By convention."""

RECENT_ROWS = 50_000
"""Rows of a stream that weights are optimised on when ``history`` is None. By convention."""

SUMMARY_VALUES = 4096
"""Values that the summary of a numeric column keeps. By convention: finer than any cut that a
stream of some million rows would pay for."""

SCRATCH_CELLS = 1 << 18
"""Numbers of the scratch matrix of a Hessian: 2 MB, which stays in the cache."""
