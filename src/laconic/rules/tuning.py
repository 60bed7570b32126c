"""Numbers of the sparse rules that are choices, not mathematics, each with its reason."""

LEAST_ROWS_SHARE = 0.02
"""A condition that holds, or fails, for a smaller share of the rows is not offered."""

N_PENALTIES = 14
"""Points of the path of penalties, evenly in logarithms (the measured sets of docs/rules.md)."""

LEAST_PENALTY = 2e-4
"""End of the path, as a share of the largest penalty."""

LOST = 1.5
"""The path ends where the held-out loss is this many times the least one: past a first minimum,
because what many rules share shows late (monks2, docs/rules.md)."""

PATH_TOL = 1e-3
"""Gap, as a share of the empty model's loss, at which a point of the path is good enough."""

HALVINGS = 30
"""Halvings of a Newton step before the fit has stalled; by convention."""

SWEEPS = 1000
"""Sweeps of coordinate descent over one quadratic model, at most; by convention."""

LEAST_CURVATURE = 1e-6
"""Curvature left to a row that is certain, or the quadratic model has no minimum."""

ROUNDING = 1e-14
"""Relative increase of the objective that rounding may show."""

RIDGE = 1e-11
"""Relative diagonal that keeps collinear conditions solvable."""
