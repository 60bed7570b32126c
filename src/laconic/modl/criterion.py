"""Description length of a supervised partition, in nats (MODL).

A partition cuts one variable in I parts; part i holds the class weights n_i1 ... n_iJ, of sum N_i.
Its cost is a code length: the prior says which partition, each part says which class mix, and the
data cost says which row has which class::

    cost = prior(partition) + sum_i ln C(N_i + J - 1, J - 1) + sum_i ln N_i! / prod_j n_ij!

The last two terms together are minus the log marginal likelihood of the classes of a part under
a uniform Dirichlet prior, so ln x! extends to sample weights through the gamma function. As a
function of the class weights of the part it is concave, which is why optimal groups of two-class
values are contiguous when sorted by class rate, and why no optimal cut falls between two
neighbouring values of one and the same class.

Priors: Boulle (2006, "MODL: a Bayes optimal discretization method", Machine Learning 65) and
Boulle (2005, "A Bayes optimal approach for partitioning the values of categorical attributes",
JMLR 6), or the granular prior that later software of the same school uses, in which coarse
boundaries are cheap and small numbers of parts are likely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Self

import numpy as np
from scipy.special import gammaln

from laconic._typing import Floats, Ints

CodeName = Literal["granular", "2006"]

LN2 = math.log(2.0)
GARBAGE_FROM = 7
"""A garbage group may exist only above this number of values."""

_TABULATED = 65_536  # C0(M) is a sum up to here, an integral beyond: exact to 2e-6 nats either way


def log2_star(n: Floats | Ints | int) -> Floats:
    """Rissanen's log2*(n) = log2 n + log2 log2 n + ..., positive terms only."""
    term = np.asarray(n, dtype=np.float64)
    total = np.zeros_like(term)
    while True:
        term = np.log2(np.maximum(term, 1.0))
        if not term.any():
            return total
        total = total + term


@lru_cache(maxsize=1)
def _harmonic_table() -> Floats:
    return np.concatenate([[0.0], np.cumsum(2.0 ** -log2_star(np.arange(1, _TABULATED + 1)))])


def log_universal_sum(bound: Ints | int) -> Floats:
    """ln C0(M), C0(M) = sum over m = 1..M of 2^(-log2*(m)); an integral replaces m > 65,536."""
    large = np.asarray(bound, dtype=np.float64)  # weights may add up to more than any integer
    near = _harmonic_table()[np.clip(large, 1, _TABULATED).astype(np.int64)]
    iterated = np.maximum(large, _TABULATED)
    for _ in range(5):
        iterated = np.log2(iterated)
    return np.asarray(np.log(near + LN2**5 * iterated))


def universal_code(n: Floats | Ints | int, bound: Ints | int) -> Floats:
    """U(n; M) = ln C0(M) + ln 2 log2*(n): an integer of 1..M, small ones cheap."""
    return log_universal_sum(bound) + LN2 * log2_star(n)


def log_factorial(x: Floats | Ints | float) -> Floats:
    return np.asarray(gammaln(np.asarray(x, dtype=np.float64) + 1.0))


def log_partition_count(n_values: Ints | int, n_groups: Ints | int) -> Floats:
    """ln B(V, G): ways to put V values in at most G groups (arrays broadcast).

    B(V, G) = sum_{i<=G} i^V / i! * e_{G-i}, with e_m = sum_{r<=m} (-1)^r / r! >= 0: every term is
    nonnegative, so the sum in logarithms is exact for any V.
    """
    values, groups = np.broadcast_arrays(np.asarray(n_values), np.asarray(n_groups))
    groups = np.maximum(np.minimum(groups, values), 1)
    i = np.arange(1, int(groups.max()) + 1)
    with np.errstate(divide="ignore"):
        log_e = np.log(_TRUNCATED_EXPONENTIALS)
    left = groups[..., None] - i
    terms = values[..., None] * np.log(i) - log_factorial(i)
    terms = terms + log_e[np.clip(left, 0, len(log_e) - 1)]
    terms = np.where(left >= 0, terms, -np.inf)
    top = terms.max(axis=-1)
    return np.asarray(top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)))


def _truncated_exponentials() -> Floats:
    r = np.arange(25, dtype=np.float64)
    sums = np.cumsum((-1.0) ** r / np.exp(gammaln(r + 1.0)))
    sums[1] = 0.0  # 1 - 1, exactly
    return np.asarray(sums)


_TRUNCATED_EXPONENTIALS = _truncated_exponentials()


def part_prior_cost(class_weights: Floats) -> Floats:
    """ln C(N_i + J - 1, J - 1) of every part; classes on the last axis."""
    n_classes = class_weights.shape[-1]
    total = class_weights.sum(axis=-1)
    return np.asarray(gammaln(total + n_classes) - gammaln(total + 1.0) - gammaln(n_classes))


def part_data_cost(class_weights: Floats) -> Floats:
    """ln N_i! / prod_j n_ij! of every part; classes on the last axis."""
    total = class_weights.sum(axis=-1)
    return np.asarray(gammaln(total + 1.0) - gammaln(class_weights + 1.0).sum(axis=-1))


def part_cost(class_weights: Floats) -> Floats:
    """The two together: minus the log marginal likelihood of the part's classes."""
    n_classes = class_weights.shape[-1]
    total = class_weights.sum(axis=-1)
    own = gammaln(class_weights + 1.0).sum(axis=-1)
    return np.asarray(gammaln(total + n_classes) - gammaln(n_classes) - own)


@dataclass(frozen=True)
class Costs:
    """A description length, split as reports show it."""

    construction: float
    preparation: float
    data: float

    @property
    def total(self) -> float:
        return self.construction + self.preparation + self.data


@dataclass(frozen=True)
class _Prior:
    """What both priors know: the weight N of the rows, and what naming the variable costs."""

    total: float
    selection: float = 0.0

    @property
    def rows(self) -> int:
        """N as an integer: what granularities and boundary counts refer to."""
        return max(2, math.ceil(self.total * (1.0 - 1e-12)))

    def unnamed(self) -> Self:
        """Without the cost of naming the variable: one side of a grid, which pays it once."""
        return replace(self, selection=0.0)


@dataclass(frozen=True)
class GranularPrior(_Prior):
    """The granular prior.

    At granularity g = 1..G, G = ceil(log2 N), boundaries are drawn among V_g - 1, with
    V_g = min(2^g, N) equal-frequency partiles; categories rarer than N / 2^g share one pseudo
    value, and the V_g values of a grouping are those that are left. ``selection`` is what naming
    the variable costs: ln K for one of K columns.

    >>> prior = GranularPrior(total=48_842, selection=math.log(15))
    >>> round(float(prior.construction(2)), 4)
    3.4012
    """

    has_garbage: bool = True

    @property
    def finest(self) -> int:
        return max(1, (self.rows - 1).bit_length())

    @property
    def interval_levels(self) -> tuple[int, ...]:
        return tuple(range(1, self.finest + 1))

    @property
    def group_levels(self) -> tuple[int, ...]:
        """Granularities with 2^g < N: a category seen once never stands alone."""
        return tuple(range(1, max(2, self.finest)))

    def is_finest(self, level: int) -> bool:
        return bool(2**level >= self.rows)

    def kept_weight(self, level: int) -> float:
        """Weight from which a category stands alone at this granularity."""
        return float(max(2, math.ceil(self.rows / 2**level)))

    def construction(self, n_parts: Ints | int) -> Floats:
        return np.where(np.asarray(n_parts) > 1, LN2 + self.selection, LN2)

    def intervals(self, n_parts: Ints | int, level: int) -> Floats:
        n_cuts = np.asarray(n_parts) - 1
        if not n_cuts.any():  # asked of every column
            return np.zeros(n_cuts.shape)
        places = max(1, min(2**level, self.rows) - 1)
        cost = (
            universal_code(level, self.finest)
            + universal_code(np.maximum(n_cuts, 1), places)
            + n_cuts * math.log(places)
            - log_factorial(n_cuts)
        )
        return np.where(n_cuts > 0, cost, 0.0)

    def groups(self, n_parts: Ints | int, level: int, n_values: int) -> Floats:
        parts = np.asarray(n_parts)
        cost = (
            self._group_start(level, n_values)
            + universal_code(np.maximum(parts - 1, 1), n_values - 1)
            + log_partition_count(n_values, parts)
        )
        return np.where(parts > 1, cost, 0.0)

    def groups_with_garbage(
        self, n_parts: int, level: int, n_values: int, n_garbage: Ints | int
    ) -> Floats:
        """One of the parts is the garbage, of ``n_garbage`` values; infinite if not allowed."""
        informative = n_parts - 1
        kept = n_values - np.asarray(n_garbage)
        allowed = (kept >= max(2, informative)) & (kept < n_values)
        if n_values <= GARBAGE_FROM or informative < 2 or not allowed.any():
            return np.full(kept.shape, np.inf)
        kept = np.where(allowed, kept, n_values - 1)
        cost = (
            self._group_start(level, n_values)
            + universal_code(kept - 1, n_values - 2)
            + kept * math.log(n_values)
            - log_factorial(kept)
            + log_universal_sum(kept - 1)
            + LN2 * log2_star(informative - 1)
            + log_partition_count(kept, informative)
        )
        return np.where(allowed, cost, np.inf)

    def _group_start(self, level: int, n_values: int) -> float:
        choice = LN2 if n_values > GARBAGE_FROM else 0.0
        return float(universal_code(level, self.finest)) + choice


@dataclass(frozen=True)
class Prior2006(_Prior):
    """Boulle's first priors: ln N + ln C(N + I - 1, I - 1), and ln V + ln B(V, I) for groups.

    Every distinct value may carry a boundary and every category may stand alone. There is no cost
    for naming a column; ``selection`` is what a constructed variable pays beyond one.
    """

    has_garbage: bool = False

    @property
    def interval_levels(self) -> tuple[int, ...]:
        return ((self.rows - 1).bit_length(),)

    @property
    def group_levels(self) -> tuple[int, ...]:
        return self.interval_levels

    def is_finest(self, level: int) -> bool:
        return True

    def kept_weight(self, level: int) -> float:
        return 0.0

    def construction(self, n_parts: Ints | int) -> Floats:
        return np.where(np.asarray(n_parts) > 1, self.selection, 0.0)

    def intervals(self, n_parts: Ints | int, level: int) -> Floats:
        n_cuts = np.asarray(n_parts, dtype=np.float64) - 1.0
        ways = gammaln(self.rows + n_cuts + 1.0) - gammaln(n_cuts + 1.0) - gammaln(self.rows + 1.0)
        return np.asarray(math.log(self.rows) + ways)

    def groups(self, n_parts: Ints | int, level: int, n_values: int) -> Floats:
        return np.asarray(math.log(n_values) + log_partition_count(n_values, n_parts))

    def groups_with_garbage(
        self, n_parts: int, level: int, n_values: int, n_garbage: Ints | int
    ) -> Floats:
        return np.full(np.shape(n_garbage), np.inf)


PartitionPrior = GranularPrior | Prior2006
_PRIORS: dict[str, type[PartitionPrior]] = {"granular": GranularPrior, "2006": Prior2006}


def make_prior(code: CodeName, total: float, selection: float) -> PartitionPrior:
    """The prior of that code; ``selection`` counts only beyond a plain column for "2006"."""
    if code not in _PRIORS:
        raise ValueError(f"code must be 'granular' or '2006', got {code!r}.")
    return _PRIORS[code](total, selection)


def partition_costs(class_weights: Floats, prior: PartitionPrior, partition_cost: float) -> Costs:
    """Costs of parts (rows of ``class_weights``; grids: all cells) under a partition cost."""
    n_parts = len(class_weights)
    preparation = partition_cost + float(part_prior_cost(class_weights).sum())
    data = float(part_data_cost(class_weights).sum())
    return Costs(float(prior.construction(n_parts)), preparation, data)


def level_of(cost: float, null_cost: float) -> float:
    """1 - cost / null cost, at least 0: the share of the code length that the variable saves."""
    return max(0.0, 1.0 - cost / null_cost) if null_cost > 0.0 else 0.0
