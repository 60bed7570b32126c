"""Numbers of the linear models that were chosen, and what chose them.

"Gray-zone benchmark" is benchmarks/bench_gray_zone.py, whose table stands in docs/gray_zone.md.
"""

from __future__ import annotations

import math

LEAST_LEVEL_WEIGHT = 5.0
"""Levels of less total weight (rows, when there are no weights) share one coefficient; by
convention, as the least count of a cell in a chi-squared test. Weight and not rows, so that a row
of weight 5 is five rows."""

MANY_LEVELS = 10
"""Levels of a column from which on their common spread is asked of the rows: fewer hardly tell it;
by convention."""
LEAST_SPREAD, MOST_SPREAD = 0.01, 10.0
"""Ends of that spread, in log-odds: beyond, effects no longer change; by convention."""
EFFECT_STEPS, EFFECT_TOL = 8, 0.05
"""Steps of the spreads at most, and the change of a logarithm that ends them; by convention."""

ROUNDS = 6
"""Rounds in which a Newton step takes in the kinks that it crosses. Without any, 15 to 60 steps
instead of 6 on 23,235 rows of forest cover, and one zone did not converge; six by convention."""
THIN_EVERY, THIN_ABOVE = 4, 4_096
"""From so many rows on, one row in four is fitted first; gray-zone benchmark."""
LEAST_HINGES, HINGES_A_COLUMN = 4_000, 16
"""Rows whose kink may enter a step's model: fewer stall on integer grids and duplicated rows
(tests/linear/test_kink_newton.py), more are only slower."""
SWEEPS, EXCHANGES = (20, 40, 80), 10
"""Sweeps of coordinate descent and exchanges of the active set before the kink QP turns to the
interior point; gray-zone benchmark."""

FAR_FROM_ZERO, FAR_TO_WIDE = 1e5, 1e3
"""Columns are centred when their mean exceeds this and so many times their width: 1e12 plus noise
of one made the Hessian singular to rounding, 1e5 does not; by convention."""
WIDEST_DENSE, WIDEST_SPARSE = 2_000, 500
"""Above this many columns (dense, CSR) a d x d Hessian is not formed; gray-zone benchmark."""
LAST_STEPS = 2
"""Newton steps after the certificate is reached: one left equal problems 1e-8 apart where rows
stand on kinks, two do not (scikit-learn's check that a weight is a repetition)."""
MOST_IN_ONE_MATRIX = 500
"""Coefficients up to which a multinomial likelihood without kinks is solved with its Hessian in
memory; by convention, as above."""
SHARPEN, SHARPEST, PROBLEMS = 8.0, 1e8, 20
"""Conjugate gradients: factor of the stiffness where new multipliers alone do not help, its end,
and the number of smoothed problems; gray-zone benchmark."""
CG_STEPS, CG_RESIDUAL = 250, 0.1
"""Most products of one Newton direction, and the share of the gradient left over; by convention."""

DESCENT_PRICE = 0.03
"""Wide sparse rows: price of sum y alpha beside the mean square of a row. A tenth of it took up to
four times the sweeps on 30 fits of five generated tables, a hundredth twenty times."""
DESCENT_SWEEPS, SWEEPS_A_CHECK, SWEEPS_A_DECADE = 1_000, 5, 100
"""Most sweeps, sweeps between two certificates, and those in which the gap must fall to a tenth, or
conjugate gradients go on from there; the same fits."""

CHUNK_ROWS, MULTINOMIAL_CHUNK_ROWS = 2_048, 4_096
"""Rows packed before each symmetric product: small enough to stay in cache; gray-zone benchmark."""
SAMPLE_ROWS = 2**18
"""Rows of a scan held in memory to find the start; by convention (some 100 MB)."""
MOST_HINGES = 2**17
"""Rows of a scan whose kink may enter one step's model; by convention (some 50 MB)."""

HALF_WIDTHS = (math.inf, 3.0, 2.0, 1.0, 0.5)
"""Half-widths, in log-odds around the threshold of the costs, of the zones tried by default; the
widths of the paper's Table 3."""
THRESHOLDS, REACH = 101, 2.0
"""Thresholds tried, and how far in log-odds from the one of the costs; by convention."""
