"""Rules of a card, from what a user writes to limits of items; which rules clash, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from laconic._typing import Floats, Ints
from laconic.data.tables.columns import shown
from laconic.scorecard.items import ColumnItems
from laconic.scorecard.problem import CardProblem, Limits


@dataclass(frozen=True)
class Rule:
    """One rule in words; ``items`` may have points of ``signs`` only, ``at_most`` so many of them
    may have points, and at least one must where ``needed``."""

    text: str
    items: Ints
    signs: tuple[int, ...] = (-1, 1)
    at_most: int | None = None
    needed: bool = False


class Names:
    """Items by their texts and by their columns."""

    def __init__(self, columns: Sequence[ColumnItems], known: Iterable[str]) -> None:
        self.columns, self.known = columns, set(known)
        self.texts = [text for c in columns for text in c.texts]
        self.kinds = [kind for c in columns for kind in c.kinds]
        self.owner = [c.column for c in columns for _ in c.texts]

    def places(self, name: Any, what: str) -> Ints:
        """The items that a name means: one item by its text, or all items of a column."""
        found = [i for i, text in enumerate(self.texts) if text == name]
        found = found or [i for i, column in enumerate(self.owner) if column == name]
        if not found and str(name) not in self.known:
            offered = ", ".join(self.texts[:6]) + (", ..." if len(self.texts) > 6 else "")
            raise ValueError(
                f"{what} names {shown(name)}, which is neither a column nor an item; the items "
                f"offered here are {offered}."
            )
        return np.array(found, dtype=np.int64)


_SIGNS: dict[Any, tuple[int, ...]] = {1: (1,), -1: (-1,), "+": (1,), "-": (-1,)}
_DIRECTIONS: dict[Any, int] = {1: 1, -1: -1, "increasing": 1, "decreasing": -1}


def read_rules(
    names: Names,
    *,
    monotone: Any = None,
    signs: Any = None,
    forced: Any = None,
    forbidden: Any = None,
    exclusive: Any = None,
    group_limits: Any = None,
    max_per_column: int | None = None,
) -> list[Rule]:
    """The rules of an estimator's parameters, in the order of the parameters."""
    rules: list[Rule] = []
    for column, direction in _pairs(monotone, "monotone"):
        if direction not in _DIRECTIONS:
            raise ValueError(
                f"monotone[{column!r}] must be 1, -1, 'increasing' or 'decreasing', got "
                f"{direction!r}."
            )
        own = names.places(column, "monotone")
        if any(names.kinds[i] == "category" for i in own):
            raise ValueError(f"monotone[{column!r}]: the column is categorical and has no order.")
        own = own[[names.kinds[i] == "above" for i in own]] if len(own) else own
        rules.append(Rule(f"monotone in {column}", own, (_DIRECTIONS[direction],)))
    for name, sign in _pairs(signs, "signs"):
        if sign not in _SIGNS:
            raise ValueError(f"signs[{name!r}] must be 1, -1, '+' or '-', got {sign!r}.")
        rules.append(Rule(f"sign of {name}", names.places(name, "signs"), _SIGNS[sign]))
    rules += [
        Rule(f"forced {name}", names.places(name, "forced"), needed=True)
        for name in _listed(forced, "forced")
    ]
    rules += [
        Rule(f"forbidden {name}", names.places(name, "forbidden"), ())
        for name in _listed(forbidden, "forbidden")
    ]
    groups = [(group, 1, "exclusive") for group in _listed(exclusive, "exclusive")]
    groups += [(group, most, "group_limits") for group, most in _pairs(group_limits, None)]
    for group, most, what in groups:
        members = [group] if isinstance(group, str) else list(group)
        if not isinstance(most, int | np.integer) or most < 0:
            raise ValueError(f"{what}: the limit of {members} must be a whole number >= 0.")
        places = [names.places(name, what) for name in members]
        said = f"at most {most} of {', '.join(map(str, members))}"
        rules.append(Rule(said, np.unique(np.concatenate(places)), at_most=int(most)))
    if max_per_column is not None:
        for column in dict.fromkeys(names.owner):
            said = f"at most {max_per_column} items of {column}"
            rules.append(Rule(said, names.places(column, ""), at_most=int(max_per_column)))
    return rules


def _pairs(given: Any, what: str | None) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.items())
    if what is None and isinstance(given, Sequence) and all(np.size(p) >= 2 for p in given):
        return [(pair[0], pair[1]) for pair in given]
    raise ValueError(f"{what or 'group_limits'} must be a dict, got {type(given).__name__}.")


def _listed(given: Any, what: str) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ValueError(f"{what} must be a list, got {given!r}.")
    return list(given)


def limited(
    problem: CardProblem, rules: Sequence[Rule], max_columns: int | None
) -> tuple[CardProblem, Ints]:
    """The problem under the rules, and a card that keeps them; refuses rules that clash."""
    start = _feasible(problem, rules, max_columns)
    if start is None:
        raise ValueError(_clash(problem, rules, max_columns))
    lo, hi = _point_limits(problem, rules)
    limits = Limits(
        tuple((r.items, r.at_most) for r in rules if r.at_most is not None and len(r.items)),
        tuple(r.items for r in rules if r.needed),
        max_columns,
    )
    made = replace(problem, lo=lo, hi=hi, limits=limits)
    # the least points of one kind: a card of its own, feasible whatever the loss
    points = np.where(start, np.where(hi > 0, 1, -1), 0).astype(np.int64)
    return made, points


def _point_limits(problem: CardProblem, rules: Sequence[Rule]) -> tuple[Ints, Ints]:
    lo, hi = problem.lo.copy(), problem.hi.copy()
    for rule in rules:
        if -1 not in rule.signs:
            lo[rule.items] = 0
        if 1 not in rule.signs:
            hi[rule.items] = 0
    return lo, hi


def _feasible(
    problem: CardProblem, rules: Sequence[Rule], max_columns: int | None, limited: bool = True
) -> Floats | None:
    """Which items could have points together under the rules; None where no choice keeps them."""
    p = problem.n_items
    needed = [rule for rule in rules if rule.needed]
    if any(not len(rule.items) for rule in needed):
        return None
    if not needed:
        return np.zeros(p)
    lo, hi = _point_limits(problem, rules)
    columns, column = np.unique(problem.column, return_inverse=True)
    n = p + len(columns)
    rows: list[tuple[Ints, Ints, float, float]] = []
    everything = np.arange(p)
    ones = np.ones(p, dtype=np.int64)
    if limited:
        rows.append((everything, ones, -np.inf, float(problem.most_items)))
    if max_columns is not None:
        own = p + np.arange(len(columns))
        rows.append((own, np.ones(len(own), dtype=np.int64), -np.inf, float(max_columns)))
    for rule in rules:
        unit = np.ones(len(rule.items), dtype=np.int64)
        if rule.at_most is not None:
            rows.append((rule.items, unit, -np.inf, float(rule.at_most)))
        if rule.needed:
            rows.append((rule.items, unit, 1.0, np.inf))
    A = lil_matrix((len(rows) + p, n))
    low, high = np.full(len(rows) + p, -np.inf), np.full(len(rows) + p, np.inf)
    for r, (places, values, least, most) in enumerate(rows):
        A[r, places] = values
        low[r], high[r] = least, most
    for j in range(p):  # an item with points reads its column
        A[len(rows) + j, j], A[len(rows) + j, p + column[j]] = 1.0, -1.0
        high[len(rows) + j] = 0.0
    top = np.concatenate([((lo < 0) | (hi > 0)).astype(float), np.ones(len(columns))])
    cost = np.concatenate([np.ones(p), np.zeros(len(columns))])
    found = milp(
        cost,
        constraints=LinearConstraint(A.tocsr(), low, high),
        integrality=np.ones(n),
        bounds=Bounds(np.zeros(n), top),
    )
    return None if found.x is None else np.rint(found.x[:p])


def _clash(problem: CardProblem, rules: Sequence[Rule], max_columns: int | None) -> str:
    """The sentence that names rules of which none could be left out of the clash."""
    kept, columns, limited = list(rules), max_columns, True
    for rule in rules:
        fewer = [r for r in kept if r is not rule]
        if _feasible(problem, fewer, columns, limited) is None:
            kept = fewer
    if columns is not None and _feasible(problem, kept, None, limited) is None:
        columns = None
    if _feasible(problem, kept, columns, False) is None:
        limited = False
    empty = [rule.text for rule in kept if rule.needed and not len(rule.items)]
    said = [rule.text for rule in kept]
    said += [f"max_columns={columns}"] if columns is not None else []
    said += [f"max_items={problem.most_items}"] if limited else []
    if empty:
        return (
            f"No card keeps the rules: {empty[0]}, but the column offers no item (it is constant, "
            "or its cuts say nothing of the class); leave the rule out, or give cutting='both'."
        )
    return f"No card keeps the rules: these clash: {'; '.join(said)}. Leave one of them out."
