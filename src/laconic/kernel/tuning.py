"""Numbers of the kernel models that were chosen, and what chose them.

"Kernel benchmark" is benchmarks/bench_gray_zone_kernel.py, whose tables stand in
docs/gray_zone.md.
"""

from __future__ import annotations

import math

# -- which solver ----------------------------------------------------------------------------------

SMO_UP_TO = 8_000
"""Rows up to which pairs of multipliers are tried first; kernel benchmark."""
WHOLE_MATRIX_UP_TO = 2_600
"""Rows up to which the kernel matrix is kept whole in double precision, and Newton on it is taken
without a look at the kernel's rank; kernel benchmark."""
WIDEST_BASIS, BASIS_SQUARED_A_ROW = 700, 7.0
"""A basis of m rows costs n m^2, pairs n^2: it is worth its while up to m^2 = 7 n; kernel
benchmark."""
PATIENCE_WITH_PAIRS = 100
"""Sweeps of pair steps after which "auto" turns to Newton: where pairs do at all they take fewer
than 20 on the kernel benchmark."""
FEW_ROWS, FINE = 500, 1e-11
"""On so few rows the last digits cost next to nothing: the gap aimed at there; by convention."""
LEFT_OVER = 1e-5
"""What a basis may leave of k(x, x), as a share of the largest; kernel benchmark."""
LARGEST_ACTIVE_SET = 2_000
"""Rows of the paper's exchanges, which form the kernel matrix; by convention."""

# -- pairs of multipliers --------------------------------------------------------------------------

DOUBLE_UP_TO, WHOLE_CACHE_UP_TO = 1_000, 3_000
"""Rows up to which kernel rows are kept in double precision, and all of them; kernel benchmark."""
CHECK_EVERY = 300
"""Pair steps between looks at the gap, when rows are shrunk too; kernel benchmark."""
BATCH = 16
"""Kernel rows fetched at a time; kernel benchmark."""
FINEST = 1e-10
"""Violations below this are rounding in double precision."""
ROUGH = 1e-6
"""Least relative gap for which differences in single precision may do."""
CLOSE = 0.1
"""The gap is not looked at before violations are below this; by convention."""
ROUNDS_WITHOUT_GAIN = 20
"""Rounds (all rows, then fewer) without a gap a tenth smaller after which pairs give up; small
linear kernels (tests/kernel/test_kernel_solvers.py) have had up to some ten."""
HALVINGS, FEW_HALVINGS = 25, 6
"""Halvings of the bracket of the intercept, in the end and on the way; by convention."""
NARROW = 34
"""Up to this many factors kernel rows are computed by compiled loops, above by matrix products;
kernel benchmark."""

# -- Newton on rounded kinks -----------------------------------------------------------------------

COARSE_WIDTH, FIRST_WIDTH, NARROWEST = 0.3, 0.1, 1e-3
"""Width of the rounded kinks on part of the rows, at the start on all, and at the start of a later
round; kernel benchmark."""
STALE = 0.1
"""Share by which a row's curvature may be off before the Hessian is corrected; kernel benchmark."""
STUCK = 6
"""Widths without a smaller gap after which the solver gives up; by convention."""
FACTOR_UP_TO = 1_500
"""Up to this many curved rows a step is solved by a factor, above by conjugate gradients; kernel
benchmark."""
PRECONDITIONER_RANK = 300
"""Most basis rows of the conjugate gradients' preconditioner; kernel benchmark."""
BLOCK_ROUNDS, LOOSE, TIGHTEST = 20, 100.0, 1e-4
"""Rounds of growing working sets, and the factor of tol that each aims at, first and last."""
COARSEST_ROWS, COARSEST_SPAN_ROWS = 300, 400
"""Least rows of a thinned problem that finds the start, on a matrix and on a basis."""

# -- bases and landmarks ---------------------------------------------------------------------------

SAMPLE = 1_000
"""Rows among which a basis is picked at a time; kernel benchmark."""
SPREAD = 1e4
"""Landmarks whose whitening enlarges rounding by less than this may be used without it."""
KMEANS_ROWS = 20_000
"""Rows that k-means places landmarks on; kernel benchmark."""

# -- sizes of blocks, for the cache of the processor -----------------------------------------------

MATRIX_BLOCK, STRIPE, SCORE_CHUNK, REMAINDER_CHUNK = 1_024, 256, 512, 1_024
FEATURE_CHUNK, PACKED = 256, 4_096

# -- ranks -----------------------------------------------------------------------------------------

KNOTS = 64
"""Most knots of the map from a number to its normal quantile; by convention."""
CATEGORY_SPREAD = 1.0 / math.sqrt(2.0)
"""Two different categories are as far apart as two numbers one standard deviation apart."""

FARTHEST = 1e5
"""Size of an exponent beyond which its rounding, 1e-16 of it, would show in the eleventh digit of
a kernel value: voids are closed first."""
