"""Tuned numbers of the votes: what each one is for, and what chose it."""

from __future__ import annotations

import numpy as np

LISTED = 1500
"""Up to this many voters are solved on their whole Gram matrix, more are priced (by convention:
the matrix then takes 18 MB and a solve less than a second, docs/votes.md)."""

MOST_LISTED = 20_000
"""Votes that weigh every voter refuse more (by convention: the matrix takes 3 GB)."""

PENALTIES = (*np.geomspace(0.9, 0.003, 25).tolist(), 0.0)
"""Shares of the largest penalty tried when mu is chosen, from one voter to least squares (test
risk on the sets of docs/votes.md)."""

FINE_PENALTIES = tuple(np.geomspace(1.5e-3, 1e-6, 11).tolist())
"""Tried before least squares when neighbouring voters are almost alike (kernels): most of their
path is there (seeds 10 to 14 of the kernel table in docs/votes.md)."""

MARGINS = (0.95, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Shares of the largest mean margin tried for quasi-uniform votes (by convention: from the best
voters alone to least squares)."""

ROUGH = 0.1
"""While mu is chosen over a priced class, slopes are solved to this share of the penalty (speed of
benchmarks/bench_votes.py midpoints at an equal choice)."""

PRICED_TOL = 1e-4
"""Smallest relative tolerance on the slopes of a priced class: neighbouring thresholds are almost
the same voter, and exchanging them for ever smaller gains would take most of the time (same
benchmark)."""

PRICED_MARGIN = 1e-4
"""A priced class meets a given mu up to this share of the largest one (by convention)."""

PATIENCE = 2
"""Penalties without a better held-out loss after which a path over a priced class is left: twice
as many on fewer than ``ENOUGH`` held-out rows, which tell losses apart badly, three times as many
while the loss is above ``PLATEAU`` of the first one, where one voter is alone at several penalties
(``test_a_priced_path_is_not_left_on_the_plateau_of_its_first_voter``)."""

ENOUGH, PLATEAU = 2000, 0.95

WORTH = 2e-3
"""Relative gain of held-out loss that is worth going on for: the path doubles its voters a step
(benchmarks/bench_votes.py midpoints)."""

BLOCK_SHARE = 0.5
"""Column generation enters the steepest voter of each column that is at least this share as steep
as the best (same benchmark)."""

EXACT_ROWS = 1500
"""Up to this many rows the dual of CG-Boost is solved by the active set on its kernel matrix,
beyond by coordinate descent (by convention)."""

NUS = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
"""Tried by ``LPBoostClassifier(nu="cv")``: below twice the error rate the vote is zero, so the
grid is not small (by convention)."""

COSTS_OF_HINGE = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Tried by ``CGBoostClassifier(C="cv")`` (by convention)."""

WIDTHS = (0.5, 0.02, 0.1, 2.0)
"""gamma·n_features tried by ``KernelVoters(gamma="cv")``; the first is taken when no rows can be
held out (kernel table of docs/votes.md)."""

SORTED_ROWS = 65_536
"""Up to this many rows are sorted by their values before a fit (by convention: one block)."""

SCORE_BINS = 4096
"""Bins of held-out scores in a scan; each keeps the mean of its scores (by convention)."""

MOST_VALUES = 2**15
"""Different values of a column that a scan keeps to place thresholds (by convention)."""

STEEPEST_SLOPE = 1e4
"""Inverse penalty of the calibration's slope: it only keeps separable margins finite (by
convention)."""

CLIPPED = 1e-4
"""Eigenvalues of out-of-bag products are raised to this share of the largest: products of two
trees come from different rows and need not be positive definite (notes of docs/votes.md,
forests)."""
