"""Tuned numbers of watching, each with the sentence why."""

DRAWS = 400
"""Redraws behind an interval; its ends then move by a tenth of its width from seed to seed."""
ALARM = 0.05
"""Chance of an alarm when only the class mix moved, at most; all tests of a run share it."""
SCORES, COLUMNS = 0.3, 0.25
"""How the unlabelled tests share it: the scores, and all columns together. The rest is for a class
mix beyond all redrawn ones, among which the columns are explained (less than 1 in 200), and for
tails that are only nearly those of a chi square: with 225 reference rows of a class in ten bins,
p-values below 0.002 came in 0.4 % of the draws."""
LABELLED = 0.5
"""Share of it that goes to the tests of labels, where there are labels."""
KEPT_ROWS = 20_000
"""Rows whose probabilities are kept for the likeliest mix; of more, the means of the cells."""
LEAST_EXPECTED = 5.0
"""Rows expected in a bin below which a sum of squares is no chi square; rarer bins have a test of
their own. By convention."""
ROUNDS = 3
"""Times that the variances of a column's shares are found anew; a fourth changes nothing seen."""
