"""Numbers of boosted steps that were settled by measurement or by convention, each with its why.

Measured on halves of the small sets of the main job's table (seeds 1 to 4, and 201 to 203 for the
thyroid sets); costs and log loss are those of new rows.
"""

from __future__ import annotations

RATE = 0.04
"""Share of Newton's step: with 0.1 the main job's long sum was the same within its noise (-.0060
instead of -.0065 of its cost at 1:1, 45 halves), in less than twice the time."""

PASSES, PATIENCE, MOST_STEPS = 300, 30, 20_000
"""Most passes over the terms, passes without gain of the rows outside the bag before the next is
not tried, and most steps of a bag: more passes and a patience of 100 changed nothing on the thyroid
sets. By convention."""

GREEDY = 10
"""Passes of the terms that gain most for one of all terms in turn, as explainable boosting machines
have it: all in turn was as good (45 halves) in half as much time more."""

DRAWN = 30
"""Passes at cuts that are drawn, before those at the best ones. 85 halves of 17 sets (seeds 1 to 3,
5 and 6), pages of the main job at 1:1, their costs at 1:1, 1:10 and inverse and log loss of new
rows, beside pages of step tables without drawn cuts: polygons in place of steps -.0029 -.0024
-.0014 -.0002 (standard errors .0022, .0049, .0018, .0003), with 30 drawn passes besides -.0026
-.0057 -.0004 -.0012 (.0029, .0063, .0018, .0007). 80 drawn passes were no better in a mean with
the additive model (51 halves)."""

IN_BAG = 0.632
"""Share of the rows in a bag, as many different ones as a bootstrap has: log loss alone .339,
instead of .393 with 0.85 (45 halves), whose steps are surer than they are right."""

LEAST_ROWS = 4.0
"""Least weight of each part of a cut or cross. By convention."""

RIDGE = 1e-3
"""Added to the second derivative of a part: 1 was no better in a committee."""

PRIOR_ROWS = 10.0
"""Rows like all rows that stand beside those of a category where its share is asked. By
convention."""

CUTS, PAIR_CUTS = 200, 12
"""Most cuts of a number, alone and in a pair: on the thyroid sets, 6 halves, steps are steep, and
the cost at 1:1 was .232 with 200 cuts and .249 with 32; 24 in pairs .228."""

SCREENED = 64
"""Columns whose pairs are looked at, those that say most alone. By convention."""

ENOUGH = 0.01
"""A bag ends where the loss of the rows outside is this share of that of no model: classes that
can be told apart would go on for ever. By convention."""
