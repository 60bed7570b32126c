"""What every family shares: tables read, forms predicted from, losses, decisions, certificates.

Notation, the same in every family

======== =====================================================================
n, d, K   rows, columns, classes
x, y, s   a row, its label, its weight (``sample_weight``)
w, b      coefficients and intercept of a linear score f(x) = w.x + b
m         margin y f(x), y in {-1, +1}
phi       a convex loss of the margin; phi* its conjugate; a = -phi'(m) in the dual
C         weight of the losses: objective = |w|^2/2 + C sum_i s_i phi(m_i)
p_min     lower end of the gray zone; p_max its upper end
pi        a class prior (K numbers that sum to one)
gap       a number >= value(point) - min value
======== =====================================================================
"""

from laconic._door import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "AdditiveScore": "forms",
        "Explanation": "explanation",
        "check_calibrated": "calibration",
    },
)
