"""Fit of the sparse additive model: structure, choices on held-out rows, certified solution.

The way of one fit: :func:`encode_training` learns the axes and encodes the rows (those of a scan
are read by :mod:`laconic.additive.scan`), :func:`~laconic.additive.pairs.build` makes the structure
of all rows, :mod:`laconic.additive.selection` chooses on held-out rows, and ``_final`` solves the
convex problem of the chosen terms to its certificate.

Columns are ordered by their keys and rows by theirs. Sums of floating numbers depend on their
order; sorted, the same table gives the same model whatever order its rows and columns came in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic._typing import Floats, Ints, Keys
from laconic.additive import tuning
from laconic.additive.criterion import AdditivePoint
from laconic.additive.large.newton import LargeTask, shifted
from laconic.additive.pairs import PairRule, build
from laconic.additive.selection import Choice, FoldPath, Selection, held_out_proba, ratios_below
from laconic.additive.solver import solve_additive
from laconic.additive.structure import (
    AdditivePlan,
    Smoothness,
    Structure,
    Task,
    adaptive_weights,
    support,
)
from laconic.additive.terms import (
    PairGrids,
    TermSet,
    pair_terms,
    single_terms,
    slot_masses,
    terms_of_grams,
)
from laconic.core.contract import Training
from laconic.core.forms import AdditiveScore, Link, SlotTerm, TermKind
from laconic.core.losses import Solution, TruncatedLogistic
from laconic.data.row_keys import row_keys
from laconic.data.source import Source
from laconic.data.tables.axes import Axis, CoarseAxis, EncodedRows, KnotRule, encode, learn_axes
from laconic.data.tables.columns import Table


@dataclass(frozen=True)
class EncodedTraining:
    """What the additive fit needs of its rows, or of a sample of them and of ``all_rows``.

    ``columns`` and ``rows`` are the places that the columns and rows had when they came; ``names``
    and everything else is in the order of the fit. ``n_given`` rows came.
    """

    names: tuple[str, ...]
    columns: Ints
    rows: Ints
    keys: Keys
    y: Ints
    weight: Floats
    encoded: EncodedRows
    n_given: int
    all_rows: AllRows | None = None
    keeps_rows: bool = True
    """Whether results for every row that came may be kept in this process."""
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Groups and times of the rows of a scan that names their columns."""

    @cached_property
    def place(self) -> Ints:
        """Where each row that came is now; -1 for those outside the sample."""
        out = np.full(self.n_given, -1, dtype=np.int64)
        out[self.rows] = np.arange(len(self.rows))
        return out


@dataclass(frozen=True)
class AllRows:
    """Encoded rows where their blocks are, weights of the classes, slot products of columns."""

    source: Source
    grams: tuple[Floats, ...]
    classes: Floats

    @property
    def weight(self) -> float:
        return float(self.classes.sum())


def encode_training(rows: Training, rule: KnotRule, seed: int) -> EncodedTraining:
    """Rows in memory, encoded in the order of their keys."""
    columns = np.argsort(rows.column_keys, kind="stable")
    table = rows.table[:, columns]
    encoded = encode(table, learn_axes(table, rows.weight, rule))
    keys = row_keys(rows.table, seed, rows.column_keys)
    return in_order(table.names, columns, keys, rows.y, rows.weight, encoded)


def in_order(
    names: tuple[str, ...], columns: Ints, keys: Keys, y: Ints, weight: Floats, encoded: EncodedRows
) -> EncodedTraining:
    order = np.lexsort((weight, y, keys))
    for store in (encoded.index, encoded.fraction):
        for line in store:  # one column at a time: a second copy of all would not fit
            line[:] = line[order]
    ordered = keys[order], y[order], weight[order]
    return EncodedTraining(names, columns, order, *ordered, encoded, len(order))


@dataclass(frozen=True)
class FitSettings:
    """Validated parameters; None stands for "auto" and "cv"."""

    classes: tuple[object, ...]
    loss: TruncatedLogistic
    C: float
    group_penalty: float | None
    smoothness: float | None
    max_knots: int
    pairs: int | None
    max_terms: int | None
    signs: tuple[int, ...]
    forbidden: frozenset[tuple[int, int]]
    costs: Floats | None
    selection: str
    relaxed: bool
    tol: float
    n_jobs: int | None

    @property
    def plan(self) -> AdditivePlan:
        return AdditivePlan(
            len(self.classes), self.loss, self.C, self.smoothness, self.signs, self.relaxed,
            self.forbidden,
        )  # fmt: skip

    def ordered(self, columns: Ints) -> FitSettings:
        """The same for columns in another order."""
        place = np.argsort(columns)
        signs = tuple(self.signs[j] for j in columns) if self.signs else ()
        ends = [sorted((int(place[a]), int(place[b]))) for a, b in self.forbidden]
        return replace(self, signs=signs, forbidden=frozenset((a, b) for a, b in ends))

    def pair_rule(self, singles: TermSet, task: Task) -> PairRule:
        grids, d = PairGrids(singles, task.weight), len(singles.terms)
        possible = d * (d - 1) // 2
        if self.pairs is not None:
            return PairRule(grids, min(self.pairs, possible), forced=True)
        most = max(tuning.LEAST_CANDIDATES, d if task.few_rows else tuning.MANY_PAIRS * d)
        alone = self.group_penalty is not None
        return PairRule(grids, min(possible, most, tuning.MOST_CANDIDATES), alone=alone)


@dataclass(frozen=True)
class TermPenalties:
    """Penalties of one fitted term, kept so that the rest can be refitted after an edit."""

    columns: tuple[int, ...]
    bend: float
    line: float
    power: float
    group: float


@dataclass(frozen=True)
class FitRecord:
    """What a later refit needs: the columns, in the order of the fit, and the penalties.

    ``columns`` are the places that the columns have in a table.
    """

    columns: Ints
    axes: tuple[Axis, ...]
    coarse: tuple[CoarseAxis, ...]
    terms: tuple[TermPenalties, ...]


@dataclass(frozen=True)
class AdditiveFit:
    """A fitted model: its form, its terms as users read them, path, certificate."""

    form: AdditiveScore
    terms: list[FittedTerm]
    solution: Solution
    record: FitRecord
    group_penalty: float = np.nan
    choice: Choice = field(default_factory=Choice)
    held_out: Floats | None = None

    @property
    def path(self) -> dict[str, Floats]:
        """Held-out losses along the group penalties; empty columns without cross-validation."""
        points = self.choice.points
        return {
            "group_penalty": np.array([p.ratio for p in points]),
            "loss": np.array([p.mean for p in points]),
            "log_loss": np.array([p.log_loss for p in points]),
            "n_terms": np.array([p.n_terms for p in points]),
        }


def fit_additive(
    settings: FitSettings, training: EncodedTraining, folds: Sequence[Ints]
) -> AdditiveFit:
    """Everything from encoded rows, and the rows that each fold holds out, to a certified form."""
    settings = settings.ordered(training.columns)
    task, whole = Task(settings.plan, training.y, training.weight), training.all_rows
    if whole is None:
        singles = single_terms(training.encoded, task.weight)
    else:
        singles = terms_of_grams(training.encoded, whole.grams, whole.weight)
    pairs = settings.pair_rule(singles, task)
    structure = build(task, singles, pairs)
    rule = settings.selection, settings.max_terms, settings.n_jobs
    selection = Selection(task, folds, settings.costs, *rule)
    choice = selection.choice(singles, pairs, structure)
    structure = _chosen(task, structure, choice)
    choice = selection.followed(choice, structure)
    ratio = choice.ratio if choice.points else settings.group_penalty or 0.0
    stepped = whole is None and settings.relaxed and settings.group_penalty is None
    if whole is None:
        ratio, structure, solution = _final(settings, task, structure, ratio, stepped)
        masses = slot_masses(structure.terms, task.weight)
    else:
        # a group penalty grows like the root of the number of rows, its largest like the number
        ratio *= float(np.sqrt(len(task.y) / training.n_given))
        large = LargeTask(task, whole.source, training.n_given, whole.weight)
        structure = replace(structure, point=shifted(structure, task, whole.classes))
        ratio, structure, solution = _final(settings, large, structure, ratio, stepped)
        masses = [large.masses[term.columns] for term in structure.terms.terms]
    held_out = _held_out_proba(choice, training) if choice.points else None
    fitted = _assembled(settings, training, structure, solution, choice.paths, masses)
    return replace(fitted, group_penalty=float(ratio), choice=choice, held_out=held_out)


def _held_out_proba(choice: Choice, training: EncodedTraining) -> Floats | None:
    """Probabilities of every row by the fold that did not see it; NaN where no fold held it out."""
    if not training.keeps_rows:
        return None
    order = np.concatenate([path.held_out for path in choice.paths])
    proba = held_out_proba(np.concatenate([path.scores[0] for path in choice.paths], axis=1))
    found = np.full((training.n_given, proba.shape[1]), np.nan)
    found[training.rows[order]] = proba
    return found


def fold_forms(
    settings: FitSettings, training: EncodedTraining, choice: Choice
) -> list[tuple[Ints, AdditiveScore]]:
    """For each fold, the rows that it held out and the form that was fitted without them."""
    found = []
    reader = TermReader(training.names, training.columns, settings.ordered(training.columns).signs)
    for path in choice.paths:
        g, terms = path.coordinates[0], path.terms
        on = np.unique(terms.owner[(g != 0).any(axis=0)])
        shapes = tuple(reader.form(terms, int(t), g)[0] for t in on)
        form = _form(settings, path.intercepts[0], shapes)
        found.append((training.rows[path.held_out], form))
    return found


def _chosen(task: Task, structure: Structure, choice: Choice) -> Structure:
    """The structure at the chosen smoothness, fitted with its weak pairs or without them."""
    weak = structure.weak.any()
    now = structure.scaled(choice.factor).with_weak(choice.pair_smoothing if weak else np.inf)
    if not choice.points:
        return now
    # the last fit is the one that is certified
    steps = task.most_steps(tuning.MOST_STEPS, fold=True)
    start = task.near_start(now, choice.guess)
    point = task.solve(now, 0.0, start, task.fold_tol, max_iter=steps).point
    return replace(now, group_weights=adaptive_weights(now.terms, point), point=point)


def _final(
    settings: FitSettings, task: Task | LargeTask, structure: Structure, ratio: float, stepped: bool
) -> tuple[float, Structure, Solution]:
    """The certified fit of the terms that the penalty leaves, and those terms.

    ``stepped``: they are chosen as the folds chose theirs, by a step for each point of the path.
    More rows than the folds had are not worth so many passes; one fit at the penalty is.
    """
    chosen, kept, point = _chosen_terms(settings, task, structure, ratio, stepped)
    if len(kept):
        # of many rows the fit of the sample is farther away than that with a small penalty
        first = settings.relaxed and isinstance(task, Task)
        structure = structure.part(kept, structure.point if first else point)
    share = 0.0 if settings.relaxed and len(kept) else chosen
    polish = task.n_rows <= tuning.POLISHED_ROWS
    start, tol = structure.point, settings.tol
    if isinstance(task, Task):
        steps = task.most_steps(tuning.MOST_STEPS, fold=False)
        solution = task.solve(structure, share, start, tol, polish, steps)
    else:
        solution = task.solve(structure, share, start, tol, polish)
    return chosen, structure, solution


def _chosen_terms(
    settings: FitSettings, task: Task | LargeTask, structure: Structure, ratio: float, stepped: bool
) -> tuple[float, Ints, AdditivePoint]:
    """Terms at ``ratio``; with ``max_terms``, at the least larger penalty that respects it."""

    most_steps = tuning.MOST_PASSES
    if isinstance(task, Task):
        most_steps = task.most_steps(tuning.MOST_STEPS, fold=True)

    def at(share: float) -> tuple[Ints, AdditivePoint]:
        given = structure, share, structure.point, tuning.KEPT_TOL
        found = task.solve(*given, max_iter=most_steps).point
        return support(structure.terms, found), found

    if stepped and isinstance(task, Task):
        ratios = (*ratios_below(ratio), ratio) if ratio > 0.0 else ()
        point = task.stepped(structure, ratios, structure.point)
        kept = support(structure.terms, point)
    else:
        kept, point = at(ratio)
    most = settings.max_terms
    if most is None or len(kept) <= most:
        return ratio, kept, point
    low, high = max(ratio, tuning.LEAST_RATIO), 1.0
    kept, point = at(high)
    for _ in range(tuning.BISECTIONS):
        middle = float(np.sqrt(low * high))
        trial = at(middle)
        if len(trial[0]) <= most:
            high, (kept, point) = middle, trial
        else:
            low = middle
    return high, kept, point


# The fitted model as users read it.


@dataclass(frozen=True)
class FittedTerm:
    """One shape or grid.

    Attributes
    ----------
    form : SlotTerm
        Columns, axes and slot values.
    importance : float
        Standard deviation of the contribution on the training rows (root mean square over the
        classes when there are several scores).
    mass : ndarray
        Share of the training rows in each slot (rows between two knots are shared).
    errors : ndarray or None
        Standard errors of the values, from the fits without each fold (delete-a-group jackknife);
        None without cross-validation.
    """

    form: SlotTerm
    importance: float
    mass: Floats
    errors: Floats | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.form.columns

    @property
    def name(self) -> str:
        return " x ".join(self.columns)

    @property
    def kind(self) -> TermKind:
        return self.form.kind

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.form.axes

    @property
    def values(self) -> Floats:
        return self.form.values

    def __repr__(self) -> str:
        return f"FittedTerm({self.name!r}, {self.kind}, importance={self.importance:.3g})"


def _assembled(
    settings: FitSettings,
    training: EncodedTraining,
    structure: Structure,
    solution: Solution,
    folds: Sequence[FoldPath],
    masses: Sequence[Floats],
) -> AdditiveFit:
    terms, own, point = structure.terms, structure.smoothness, solution.point
    group = solution.details["problem"].group
    reader = TermReader(training.names, training.columns, settings.signs, folds)
    found, places = reader.terms(terms, point, masses)
    penalties = tuple(
        TermPenalties(terms.terms[t].columns, *map(float, numbers))
        for t in places
        for numbers in [(own.bend[t], own.line[t], own.power[t], group[t])]
    )
    record = FitRecord(training.columns, terms.rows.axes, terms.coarse, penalties)
    form = _form(settings, point.intercept, [t.form for t in found])
    return AdditiveFit(form, found, replace(solution, point=None, details={}), record)


def _form(settings: FitSettings, intercept: Floats, terms: Sequence[SlotTerm]) -> AdditiveScore:
    link: Link = "logit"
    if len(settings.classes) > 2:
        # adding one number to all intercepts changes nothing: the mean is set to zero
        link, intercept = "softmax", intercept - intercept.mean()
    return AdditiveScore(settings.classes, intercept, tuple(terms), link)


@dataclass(frozen=True)
class TermReader:
    """Turns fitted coordinates into terms; ``columns`` are the places of the names in the table."""

    names: Sequence[str]
    columns: Ints
    signs: Sequence[int]
    folds: Sequence[FoldPath] = ()

    def terms(
        self, terms: TermSet, point: AdditivePoint, masses: Sequence[Floats]
    ) -> tuple[list[FittedTerm], list[int]]:
        """Terms that are not zero by decreasing importance, and their places in ``terms``."""
        squares = (point.coordinates**2).sum(axis=0) / len(point.intercept)
        norms = np.sqrt(np.bincount(terms.owner, squares, minlength=len(terms.terms)))
        seen = map(int, np.flatnonzero(norms > 0))
        order = sorted(seen, key=lambda t: (-norms[t], terms.terms[t].columns))
        return [self._term(terms, t, point, float(norms[t]), masses[t]) for t in order], order

    def _term(
        self, terms: TermSet, t: int, point: AdditivePoint, size: float, mass: Floats
    ) -> FittedTerm:
        errors = _jackknife(terms.terms[t].columns, self.folds)
        form, turned = self.form(terms, t, point.coordinates)
        shares = turned(mass[:, None])[..., 0]
        return FittedTerm(form, size, shares, None if errors is None else turned(errors))

    def form(
        self, terms: TermSet, t: int, coordinates: Floats
    ) -> tuple[SlotTerm, Callable[[Floats], Floats]]:
        """A term as readers know it, and how numbers by slot become numbers by its axes."""
        term = terms.terms[t]
        values, columns = terms.values(t, coordinates), term.columns
        if len(columns) == 1 and self.signs and self.signs[columns[0]]:
            values = _exactly_monotone(values, term.n_knots, self.signs[columns[0]])
        shape = tuple(axis.size for axis in term.axes)
        # readers know the columns in the order of their table
        turn = np.argsort(self.columns[list(columns)])
        axes, last = tuple(term.axes[k] for k in turn), len(columns)

        def turned(array: Floats) -> Floats:
            return np.ascontiguousarray(array.reshape(*shape, -1).transpose(*turn, last))

        return SlotTerm(tuple(self.names[columns[k]] for k in turn), axes, turned(values)), turned


def _exactly_monotone(values: Floats, n_knots: int, sign: int) -> Floats:
    """Removes the rounding of a solution that is monotone up to 1e-12."""
    out = values.copy()
    out[:n_knots] = sign * np.maximum.accumulate(sign * out[:n_knots], axis=0)
    return out


def _jackknife(columns: tuple[int, ...], folds: Sequence[FoldPath]) -> Floats | None:
    """Standard errors from the folds; a fold without the term counts as zero."""
    if len(folds) < 2:
        return None
    curves: list[Floats | None] = []
    for fold in folds:
        place = fold.terms.place_of.get(columns)
        curves.append(None if place is None else fold.terms.values(place, fold.coordinates[0]))
    known = [c for c in curves if c is not None]
    if not known:
        return None
    stack = np.stack([np.zeros_like(known[0]) if c is None else c for c in curves])
    spread = ((stack - stack.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(spread * (len(stack) - 1) / len(stack)))


# Changes by hand.


def edited_term(term: FittedTerm, values: ArrayLike) -> FittedTerm:
    """The same term with other slot values, centred or not; its importance is measured again."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != term.values.shape and array.shape == term.values.shape[:-1]:
        array = array[..., None]
    if array.shape != term.values.shape:
        raise ValueError(
            f"values of term {term.name!r} must have shape {term.values.shape}, got {array.shape}."
        )
    form = SlotTerm(term.columns, term.axes, array)
    flat, share = array.reshape(-1, array.shape[-1]), term.mass.ravel()
    share = share / max(share.sum(), 1e-300)
    importance = float(np.sqrt((share @ (flat - share @ flat) ** 2).mean()))
    return replace(term, form=form, importance=importance, errors=None)


def refit_rest(
    settings: FitSettings,
    record: FitRecord,
    fitted: Sequence[FittedTerm],
    fixed: int | None,
    table: Table,
    y: Ints,
    weight: Floats,
) -> AdditiveFit:
    """All terms but ``fixed`` again, on given rows, with the penalties of the first fit."""
    K = 1 if len(settings.classes) == 2 else len(settings.classes)
    inner, settings = table[:, record.columns], settings.ordered(record.columns)
    rows = encode(inner, record.axes)
    singles = single_terms(rows, weight, coarse=record.coarse)
    own = [a for t, a in enumerate(record.terms) if t != fixed]
    pairs = [a.columns for a in own if len(a.columns) == 2]
    made = (*singles.terms, *pair_terms(singles, pairs, weight))
    by_columns = {term.columns: term for term in made}
    terms = TermSet(rows, singles.coarse, tuple(by_columns[a.columns] for a in own))
    parts = ([getattr(a, name) for a in own] for name in ("bend", "line", "power", "group"))
    bend, line, power, group = map(np.array, parts)
    smooth = Smoothness(terms, bend, line, power)
    problem = Task(settings.plan, y, weight).problem(terms, smooth.diagonal(), group)
    scores = np.zeros((K, len(y)))
    if fixed is not None:
        scores += fitted[fixed].form.contribution(table).T
    start = AdditivePoint(np.zeros(K), np.zeros((K, terms.n_coordinates)), scores)
    solution = solve_additive(problem, start, tol=settings.tol, max_iter=tuning.MOST_STEPS)
    reader = TermReader(inner.names, record.columns, settings.signs)
    found, places = reader.terms(terms, solution.point, slot_masses(terms, weight))
    kept = [own[t] for t in places]
    if fixed is not None:
        found.append(fitted[fixed])
        kept.append(record.terms[fixed])
        order = sorted(range(len(found)), key=lambda t: -found[t].importance)
        found, kept = [found[t] for t in order], [kept[t] for t in order]
    form = _form(settings, solution.point.intercept, [t.form for t in found])
    new = replace(record, terms=tuple(kept))
    return AdditiveFit(form, found, replace(solution, point=None, details={}), new)
