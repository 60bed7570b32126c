"""Numbers of the convex risks that are choices, not mathematics, each with its reason."""

CHUNK_ROWS = 2_048
"""Rows that the normal equations multiply at a time: they stay in the cache (bench_convex_risk)."""

FIRST_ROWS = 256
"""Rows whose mean stands for the level of the columns; by convention."""

HIGH_LEVEL = 30.0
"""Levels beyond this many deviations are taken off before products are summed, or they cancel
more than three digits; by convention."""

REFINEMENTS = 3
"""Corrections of least squares by the same factor before Newton takes over; by convention."""

RESTARTS = 2
"""Runs of Newton's method from the coefficients of the last, which sheds gathered rounding."""

SECANT_STEPS = 10
"""Steps with the curvature of touching parabolas between runs of Newton's method on Huber's loss
(40 problems with C up to 1e9 and epsilon down to 1e-3 then end within 120 iterations)."""

NEWTON_STEPS = 30
"""Newton's steps of such a run, at most."""

MOST_EXCUSED = 1e-3
"""Gap, as a share of the objective, that rounding of the scores excuses without a warning."""

MOST_DENSE = 2**24
"""Cells of a table whose singular values are taken when the normal equations fail: 128 MiB."""

WIDEST = 2_000
"""Columns up to which Newton's matrix is formed even of fewer rows, as in laconic.linear: 32 MB."""

SMALL_TABLE = 10_000
"""Rows up to which POLISHING_STEPS more iterations cost next to nothing (bench_convex_risk)."""

POLISHING_STEPS = 3

POLISHED = 1e-11
"""Gap, as a share of the objective, below which no more polishing is tried: what the penalty leaves
free is its square root, so that neither order of rows nor of columns moves a score by 1e-5."""

POLISHINGS = 5
"""Times that polishing goes on while the gap falls (case 4666 of stress/tables needs two)."""

MOST_ROWS_ON_KINK = 4_000
"""Rows that are put back on their kink by one dense least-squares problem; by convention."""

MOST_NEWTON_COLUMNS = 300
"""Columns up to which scikit-learn factors the joint Hessian; above, and for CSR rows, lbfgs."""

MOST_PAIR_COLUMNS = 512
"""Columns up to which the ranker forms Newton's matrix; conjugate gradients above."""

LABELS_OF_NEWTON = 256
"""Label ranks that the ranker's Newton matrix tells apart: its tree then stays in the cache."""

IDLE_STEPS = 8
"""Ranking steps without a smaller gap after which the ranker has stalled; by convention."""

FIRST_BAND = 4.0
"""First width of the band over which the ranker rounds the hinge: pairs of equal scores curve, or
Newton's first steps are wild under a weak penalty (tests/convex/test_ranking.py)."""

BAND_SHARE = 0.3
"""The hinge's rounded band shrinks when the rest of the gap is below this share of its misfit."""

BAND_SHRINKS = 5.0
"""Factor by which it shrinks; both by convention."""

SERIES_DEGREE = 17
"""Degree of log(1 + z) on [0, 1]: thirteen digits (tests/convex/test_ranking.py)."""

EQUAL_SCORES = 1e-5
"""Scores of a hinge that differ by less are equal: a gap of 1e-11, the usual one, leaves
|w - w*| <= 5e-6. A width that follows the gap would follow the order of rows. By convention."""
