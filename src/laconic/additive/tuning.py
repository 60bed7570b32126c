"""Tuned numbers of the sparse additive model, each with why it is there and what chose it.

[quality] means held-out log loss and costs of ``bench_additive.py quality`` on seeds 0, 1, 4, 5
and 9 (docs/additive.md reports other seeds), [time] the CPU seconds of the same runs, [convention]
a usual value that nobody has measured against others. Tests patch the numbers here.
"""

from __future__ import annotations

import numpy as np

# Sizes of samples.

FEW_ROWS = 2_500
"""Fewer rows hardly tell smoothing parameters apart or weigh terms; all folds select [quality]."""
SELECTION_ROWS = 50_000
"""Rows on which smoothness, pairs and group penalty are chosen; the final fit uses all [time]."""
POLISHED_ROWS = 1_000
"""Up to here more Newton steps cost nothing and results agree to many digits [convention]."""

# Axes and grids of pairs.

LEVEL_RIDGE = 50.0
"""Price of a level's squared distance from the line, in units of squared bend [convention]."""
PAIR_CATEGORIES = 8
"""Categories of a column in a grid: the rest are seldom told apart [convention]."""
PAIR_KNOTS = (5, 12)
"""Least and most knots of a column in a grid [quality: grids that grow with the rows]."""
ROWS_A_CELL = 100.0
"""Rows for each cell of a grid: a side has sqrt(rows / 100) knots [quality]."""
WHITENED = 1_000_000
"""Entries of Gram matrices that are decomposed in one go: larger ones leave the cache [time]."""

# Smoothing parameters by marginal likelihood.

LEAST_SMOOTHING, MOST_SMOOTHING = 1e-3, 1e7
"""Range of a smoothing parameter, beyond which shapes no longer change [convention]."""
FIRST_SMOOTHING, FIRST_PAIR_SMOOTHING = 0.1, 1.0
"""Where the search starts: shapes nearly free, so that each shows what it has [convention]."""
MOST_CHANGE = 30.0
"""One step multiplies a smoothing parameter by this at most: it is a model's step [convention]."""
WEAK_PRIOR = 0.25
"""Degrees of freedom of a weak prior [quality: 1 and 4 for all samples are no better]."""
PRIOR_FREEDOMS = WEAK_PRIOR * 2.0 ** np.arange(6)
"""Degrees of freedom among which columns choose that of their common prior [convention]."""
LEAST_FREEDOM = 1e-3
"""A column that the rows determine less says nothing about the common prior [convention]."""
POWERS = (1.0, 0.5, 0.25)
"""Powers of the roughness among which evidence chooses for each term [quality]."""
BENDING, WANDERING = 1.0, 0.5
"""Power before the rows have chosen another, and the one between [convention]."""
POWER_GRID = 10.0 ** np.arange(-2.0, 6.5, 0.5)
"""Smoothing parameters at which powers are compared [convention]."""
POWER_MARGIN = 2.0
"""Nats by which another power must win [convention]."""
POWER_STEPS = 3
"""Steps of the evidence after which the powers are chosen again [time]."""
SINGLE_STEPS, PAIR_STEPS, GUIDED_STEPS = 24, 8, 3
"""Steps of the evidence at most: for single terms, which settle slowly from equal parameters (8
steps: .0929 for .0542 on forest cover); for pairs, which start at their best; from a guess."""
EVIDENCE_TOL = 1e-4
"""Relative change of the criterion at which the search has settled [convention]."""
NEGLIGIBLE_SPREAD = 1e-3
"""Terms below this spread are left where they are while evidence moves the others [time]."""

# Which columns and pairs are looked at.

WIDE, WIDE_KEPT = 400, 120
"""Above the first number of columns a path with equal weights keeps at most the second [time]."""
WIDE_SMOOTHING, WIDE_TOL = 10.0, 1e-3
"""Smoothness and relative gap of that path, which only orders columns [convention]."""
WIDE_STEPS = 12
"""Newton steps at each of its points, at most. Two classes take 2 to 11; of more, one point may let
hundreds of columns enter, of which most are dropped again, and took 52 (2,000 rows, 500 columns,
ten classes). 1,000 rows of 600 columns and five classes, log loss of new rows twice: without a
bound .8349, 1.0326, with 12 steps .8361, 1.0330, with 6 .8739."""
WIDE_SHARES = 0.75 ** np.arange(1, 16)
"""Its group penalties, as shares of the one that empties the model [convention]."""
GAIN_RIDGE = 1.0
"""Curvature added to every cell of a screened table: rows that are nearly certain [convention]."""
EMPTY_CELL = 1e-12
"""Share of all curvature below which a difference of sums is zero [rounding]."""
FEW_LEVELS = 2.0
"""Levels of a column, but for the first, up to which one product is faster than tables [time]."""
PAIR_COLUMNS = 120
"""Columns with the largest spread whose pairs are screened [time]."""
LEAST_CANDIDATES, MOST_CANDIDATES = 10, 600
"""Candidate pairs at least, and at most [time]."""
MANY_PAIRS, TOGETHER_PAIRS = 2, 3
"""Candidate pairs for each column where rows can tell so many; and where all of them together are
known to be worth something [quality]."""
PAIR_EVIDENCE = 1.5
"""Power of the number of pairs looked at that the Bayes factor of a strong pair exceeds; above 1
since the smoothing parameter in it was itself the best of a grid [quality]."""
PAIR_GRID = 10.0 ** np.arange(-2.0, 4.5, 0.5)
"""Smoothing parameters, in units of the term, at which the evidence of a pair is looked at."""
FEW_PAIRS, ROWS_A_NUMBER = 45, 2.0
"""So few pairs are all fitted, with so many rows for each free number ("two of six") [quality]."""
TOGETHER_ROWS = 1_200
"""Evidence of all pairs takes a square matrix of the rows; more rows have held-out losses that
tell better [quality]."""
TOGETHER_GRID = (3200.0, 800.0, 200.0, 50.0)
"""Precisions of all pairs together that are compared [quality]."""
TOGETHER_MARGIN = 0.5
"""Nats by which all pairs together must win [quality]."""
TOGETHER_SHARE = 0.25
"""Some pairs, on grids that ask for smoothness once more, stand in for all with this share."""
FLAT = 1e3
"""Prior variance of the intercept in that evidence [convention]."""
ROUGHEST = 100.0
"""Coordinates so much rougher than the smoothest bend add nothing to a covariance [time]."""

# Selection on held-out rows.

RATIOS = (0.0, 1e-4, 3e-4, 1e-3, 5e-3, 2.5e-2, 1e-1)
"""Group penalties of the path, as shares of the one that empties the model [quality, time]."""
WEAK_GRID = (400.0, 60.0, 10.0, 1.5, 0.25, 0.05)
"""Common smoothing parameters of the weak pairs, tried in turn while held-out rows gain."""
FOLD_TOL, FOLD_TOL_OF_FEW = 1e-2, 1e-3
"""Relative gaps of the fits that are compared; those of few rows cost little [time]."""
SELECTION_SHARE = 0.35
"""From FEW_ROWS on as few folds select as hold out this share of the rows (two of five) [time]."""
MARGIN = 0.5
"""Standard errors of the paired held-out difference by which weak pairs, and less smoothness than
evidence asks for, must win [quality]."""
GOES_ON = 0.25
"""The next smaller parameter is tried while the last one won by so many standard errors."""
TERM_PRICE = 0.25
"""From FEW_ROWS on a term must spare as much loss as so many rows at chance level [quality]."""
MOST_DOUBLINGS = 2
"""Doublings or halvings of all smoothing parameters that are tried [time]."""
HOPELESS, FAR = 1.0, 0.005
"""A path ends where it is this many standard errors, and this share of the loss, worse than what
may still be selected [time]."""
LEAST_NORM = 1e-3
"""Spread from which on an adaptive group weight 1 / spread no longer grows [convention]."""
NEGLIGIBLE_TERM = 1e-3
"""Terms below this share of the largest spread are dropped [convention]."""
MOST_GROWN = 3.0
"""A coordinate of a guess grows by this factor at most where its penalty falls [convention]."""
GUESS_TOL, GUESS_STEPS = 1e-2, 12
"""Relative gap, and Newton steps at most, of fits that are not kept [time]."""
KEPT_TOL = 1e-3
"""Relative gap of fits that only tell which terms stay [time]."""
LEAST_RATIO, BISECTIONS = 1e-6, 14
"""Where the search for ``max_terms`` starts, and how often it halves (1 % in the penalty)."""

# The solver. None of these changes an optimum, only the way to it; all [time].

MOST_STEPS = 200
"""Newton steps of a fit; one that needs more has stalled."""
FOLD_STEPS = 100
"""Of a fit on a fold, which certifies nothing: nine were enough on eight sets, 62 with a zone."""
UNEVEN_STEPS, UNEVEN_FOLD_STEPS = 20, 3
"""Of fits on all rows and on a fold whose weights span decades (``HEAVY_ROW``) and that steps in
the space of the rows do not serve: they mostly end short anyway, and conjugate steps grow with the
steps."""
ROW_STEPS, ROW_FOLD_STEPS = 100, 4
"""The same where they serve. 300 rows of noise with weights over 24 decades take 34 to 55 from
nothing to a gap of 1e-5; a fold begins near its end, and with 8 steps of each a fit of twelve
classes, half of them of weight 1e12, took 13.7 CPU s for 10.1."""
ROW_DIRECTIONS = 4_000
"""Rows times scores, less one of several, up to which steps are taken in the space of the rows: a
step takes the cube of what is left of them."""
CURVED_DIRECTION, HOLDING_DIRECTION = 0.3, 1e-4
"""Directions of rows below this curvature beside the penalties, and below this share of the mean of
every score, are left out: with 0.001 a fit of twelve classes took as many steps, a quarter
longer."""
FAR_WRONG = 1.0
"""Margin on the wrong side from which a row gets the curvature of a bound [convention]."""
LEAST_PENALTY, FELT_PENALTY = 1e-12, 1e-3
"""Share of the largest curvature that every penalty is raised to on the way [rounding], where it is
more than this share of the least of them; 1e-11 to 1e-14 took as many steps, nothing stalled."""
ROW_RIDGES = (0.0, 1e-12, 1e-9, 1e-6)
"""Shares of its diagonal added to a matrix of rows until it has a factor [rounding]."""
BLURS = (0.3, 0.03, 0.003, 3e-4, 3e-5)
"""Widths over which the kink of a zone is rounded, in turn, until the true gap is small."""
COMPACTED_ROWS, COMPACTED_SHARE = 1_000, 0.65
"""Copying the rows that curve pays from so many rows on, if they are at most this share."""
NEGLIGIBLE_ROW, NEGLIGIBLE_ROW_LOOSELY = 0.01, 0.1
"""Rows whose curvature is below this share of the mean stay out of the products with it."""
ON_THEIR_OWN = 30.0
"""Coordinates whose penalty exceeds their curvature so many times are moved on their own."""
SETTLED = 0.05
"""A sweep that moves this share of what the first one moved ends the work on a model."""
N_SWEEPS = 3
"""Sweeps over the terms before conjugate steps; fewer were no faster."""
CONJUGATE_OF_EVIDENCE, CONJUGATE_LOOSELY, CONJUGATE = 3, 6, 30
"""Conjugate steps while evidence moves, for a loose target, and for a certified one."""
CONJUGATE_POLISHED = 200
"""Conjugate steps of an exact Newton step."""
LEAST_CONJUGATE = 12
"""Conjugate steps when there is nothing else; as many again after every four Newton steps."""
LOOSE_TOL = 1e-4
"""Targets above this relative gap are loose."""
GAP_WORTH, GAP_WORTH_LOOSELY = 0.3, 3.0
"""A gap is computed once a step gains less than this times the target."""
GAP_STEPS = 8
"""Newton steps after which a gap is computed anyway."""
REFRESH = 4
"""Steps after which a preconditioner is made again; at every step was no faster."""
JOINT_MARGIN = 3.0
"""Coordinates whose curvature exceeds their penalty so many times are solved together."""
MOST_JOINT, SOME_JOINT, JOINT_A_TERM = 300, 40, 2
"""How many at most; with few terms, whose passes over the rows are cheap, a few for each."""
HEAVY_ROW, LIGHT_SHARE = 1e6, 0.1
"""Where a row weighs so many times the lightest tenth of them, as many coordinates as may be are
solved together: generated tables with weights over 24 decades then end in seconds. Beside the
median instead, 40 rows in 12 classes, half of them of weight 1e12, took 39 CPU s for 3.5."""
JOINT_ROWS = 4_096
"""Rows, drawn by their curvature, that make the joint factor; 2,048 were no faster."""
JOINT_RIDGE = 1e-8
"""Share of the curvature added to the diagonal of the joint factor [rounding]."""
LEAST_CURVATURE = 1e-12
"""Curvature of an intercept at least: flat rows must not send it to infinity [rounding]."""
STEP_TOL, STEP_TOL_LOOSELY, EXACT_STEP_TOL = 1e-7, 3e-2, 1e-10
"""Relative accuracy of a block's group norm, of loose conjugate steps, and of exact ones."""

# Many rows, summed block by block. None of these changes an optimum; [time] counts passes.

MOST_PASSES = 150
"""Steps of a fit over all rows; each is one pass, or three where the sample misjudged it. Most need
three to eight; the kink of a zone, near which few rows of a sample lie, some dozens."""
STALLED_PASSES = 6
"""Steps in a row without gain, each more cautious than the last, that end a fit."""
CONJUGATE_SAMPLED = 60
"""Conjugate steps on the rows of the sample, which cost little beside a pass."""
SAMPLED_STEP_TOL = 1e-4
"""Relative accuracy of those steps: the sample is no better a model than that [convention]."""
REMEMBERED_MOVES = 8
"""Moves whose slopes correct the curvature of the sample [convention]."""
FIRST_CAUTION, MORE_CAUTION = 0.25, 4.0
"""Share of the curvature that is added after a step that was too long, and by what it grows; it
falls by the same factor after a step that was not [convention]."""
STEP_SHARES = tuple(0.5**k for k in range(1, 9))
"""Shares of a step that was too long that are looked at in one pass [convention]."""
