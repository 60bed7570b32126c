"""Small tables, terms and dense designs that the tests of the additive model share."""

from __future__ import annotations

import numpy as np

from laconic.additive.terms import TermSet, pair_terms, single_terms
from laconic.data.tables.axes import CategoryAxis, KnotAxis, KnotRule, encode, learn_axes
from laconic.data.tables.columns import Schema, Table


def small_table(rng: np.random.Generator, n: int) -> tuple[Table, list]:
    """Numeric with missing and a special code, its copy, a category, a one-level category."""
    x = rng.choice(np.arange(8.0), n)
    z = np.where(rng.random(n) < 0.2, 96.0, rng.normal(size=n))
    x[::9] = np.nan
    color = rng.integers(0, 3, n).astype(np.int32)
    one = np.zeros(n, dtype=np.int32)
    table = Table(
        ("x", "twin", "z", "color", "one"),
        ("numeric", "numeric", "numeric", "categorical", "categorical"),
        (None, None, None, ("a", "b", "c"), ("only",)),
        columns=[x, x.copy(), z, color, one],
    )
    # knots at 3.3 and 3.6 have no row between or on them: empty knots
    knots = np.array([0.0, 2.0, 3.3, 3.6, 5.0, 7.0])
    axes = [
        KnotAxis(knots, np.empty(0)),
        KnotAxis(knots, np.empty(0)),
        KnotAxis(np.linspace(-2, 2, 5), np.array([96.0])),
        CategoryAxis((("a",), ("b",), ("c",))),
        CategoryAxis((("only",),)),
    ]
    return table, axes


def dense_shares(rows, j: int, size: int) -> np.ndarray:
    index, fraction = rows.column(j)
    out = np.zeros((rows.n_rows, size + 1))
    place = np.arange(rows.n_rows)
    out[place, index] += 1 - fraction
    out[place, index + 1] += fraction
    return out[:, :size]


def setup(seed: int, n: int = 90):
    rng = np.random.default_rng(seed)
    table, axes = small_table(rng, n)
    rows = encode(table, axes)
    x, z, color = table.column(0), table.column(2), table.column(3)
    f = np.sin(np.nan_to_num(x)) + 0.5 * (z == 96) + 0.7 * (color == 1) - 0.3
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * f))).astype(np.int64)
    weight = rng.choice([0.5, 1.0, 2.0, 3.0], n)
    return rows, axes, y, weight


def table_of(n: int, rng: np.random.Generator) -> Table:
    """A line, a yes/no, a yes/no with missing values, a count."""
    gone = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 2, n))
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 2, n), gone, rng.poisson(1.0, n).clip(0, 3)]
    )
    return Schema.learn(X).table


def terms_of(n: int = 2_003, seed: int = 0) -> tuple[TermSet, np.ndarray, np.ndarray]:
    """Singles and three pairs, of which one has both columns on knots; labels; weights."""
    rng = np.random.default_rng(seed)
    table = table_of(n, rng)
    singles, weight = singles_of(table)
    terms = singles.extended(pair_terms(singles, [(0, 1), (1, 2), (0, 3)], weight))
    x, flag = table.column(0), table.column(1)
    f = 12.0 * x + 3.0 * flag * np.sign(x) - 2.0
    y = (rng.random(n) < 1 / (1 + np.exp(-f))).astype(np.int64)
    return terms, y, weight


def dense(terms: TermSet, t: int) -> np.ndarray:
    """Share of every row in every slot, from the definition of the axes."""
    shares = []
    for j in terms.terms[t].columns:
        slot, part = terms.rows.column(j)
        if len(terms.terms[t].columns) == 2:
            coarse = terms.coarse[j]
            part = coarse.base[slot] + coarse.step[slot] * part
            slot = coarse.index[slot].astype(int)
        size = terms.terms[t].axes[len(shares)].size
        own = np.zeros((len(slot), size + 1))
        own[np.arange(len(slot)), slot] += 1 - part
        own[np.arange(len(slot)), slot + 1] += part
        shares.append(own[:, :size])
    if len(shares) == 1:
        return shares[0]
    return np.einsum("ia,ib->iab", *shares).reshape(len(shares[0]), -1)


def singles_of(X: np.ndarray | Table, knots: int = 8) -> tuple[TermSet, np.ndarray]:
    """One term a column, on rows of weight one."""
    table = X if isinstance(X, Table) else Schema.learn(X).table
    weight = np.ones(table.n_rows)
    return single_terms(encode(table, learn_axes(table, weight, KnotRule(knots))), weight), weight


def yes_no_terms(n: int, seed: int = 0) -> TermSet:
    """Two yes/no columns, two numeric ones that nearly agree, a count; four pairs."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    X = np.column_stack(
        [
            rng.integers(0, 2, n),
            rng.random(n) < 0.2,
            x,
            x + 0.1 * rng.normal(size=n),
            rng.poisson(1.0, n).clip(0, 3),
        ]
    )
    singles, weight = singles_of(X)
    return singles.extended(pair_terms(singles, [(0, 1), (2, 3), (0, 2), (1, 4)], weight))
