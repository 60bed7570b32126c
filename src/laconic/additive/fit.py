"""Terms of a fitted additive model as users read them: names, axes, values, errors, importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from laconic._typing import Floats, Ints
from laconic.additive.criterion import AdditivePoint
from laconic.additive.evidence import Smoothness
from laconic.additive.pairs import MANY_PAIRS, PairRule, build
from laconic.additive.scan import EncodedTraining
from laconic.additive.selection import (
    Choice,
    Choosing,
    FoldPath,
    HeldOutRows,
    fold_tol,
    probabilities,
    ratios_below,
)
from laconic.additive.solver import solve_additive
from laconic.additive.structure import (
    FEW_ROWS,
    AdditivePlan,
    Structure,
    adaptive_weights,
    near_start,
    solve_at,
    stepped_to,
    support,
)
from laconic.additive.terms import PairGrids, TermSet, pair_terms, single_terms, slot_masses
from laconic.core.contract import Training
from laconic.core.forms import AdditiveScore, SlotTerm, TermKind
from laconic.core.gray_zone import TruncatedLogistic
from laconic.core.links import Link
from laconic.core.solution import Solution
from laconic.data.tables.axes import Axis
from laconic.data.tables.columns import Table
from laconic.data.tables.knots import CoarseAxis, EncodedRows, KnotRule, encode, learn_axes


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
    return replace(term, form=form, importance=_spread(form.values, term.mass), errors=None)


def _spread(values: Floats, mass: Floats) -> float:
    flat, share = values.reshape(-1, values.shape[-1]), mass.ravel() / max(mass.sum(), 1e-300)
    centred = flat - share @ flat
    return float(np.sqrt((share @ centred**2).mean()))


def fitted_terms(
    names: Sequence[str],
    terms: TermSet,
    point: AdditivePoint,
    masses: Sequence[Floats],
    signs: Sequence[int],
    folds: Sequence[FoldPath] = (),
) -> tuple[list[FittedTerm], list[int]]:
    """Terms that are not zero by decreasing importance, and their places in ``terms``."""
    K = len(point.intercept)
    squares = (point.coordinates**2).sum(axis=0)
    norms = np.sqrt(np.bincount(terms.owner, squares, minlength=len(terms.terms)) / K)
    order = sorted(np.flatnonzero(norms > 0), key=lambda t: (-norms[t], terms.terms[t].columns))
    out = []
    for t in order:
        term = terms.terms[t]
        values = terms.values(int(t), point.coordinates)
        if len(term.columns) == 1 and signs and signs[term.columns[0]]:
            values = _exactly_monotone(values, term.n_knots, signs[term.columns[0]])
        shape = (*(axis.size for axis in term.axes), K)
        form = SlotTerm(tuple(names[j] for j in term.columns), term.axes, values.reshape(shape))
        errors = _jackknife(term.columns, folds)
        out.append(
            FittedTerm(
                form,
                float(norms[t]),
                masses[t].reshape(shape[:-1]),
                None if errors is None else errors.reshape(shape),
            )
        )
    return out, [int(t) for t in order]


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


# Fit of the sparse additive model: axes, choices on held-out rows, the certified solution.


CHOICE_ROWS = 50_000
"""Rows on which smoothness, pairs and group penalty are chosen; the final fit uses all of them."""

_MOST_PAIRS = 600
_CHOICE_TOL = 1e-3
"""Relative gap of the fits that only tell which terms stay."""

_POLISHED_ROWS = 1_000
"""Up to here a few more Newton steps cost nothing and make results agree to many digits."""


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
    costs: Floats | None
    selection: str
    relaxed: bool
    tol: float
    n_jobs: int | None

    @property
    def plan(self) -> AdditivePlan:
        return AdditivePlan(
            len(self.classes), self.loss, self.C, self.smoothness, self.signs, self.relaxed
        )

    def choosing(
        self, held_out: HeldOutRows, rows: Ints | None, folds: Sequence[tuple[Ints, Ints]]
    ) -> Choosing:
        places = _inside(folds, rows)
        return Choosing(self.plan, held_out, places, self.selection, self.max_terms, self.n_jobs)

    def pair_rule(self, singles: TermSet, weight: Floats) -> PairRule:
        grids, d = PairGrids(singles, weight), len(singles.terms)
        possible = d * (d - 1) // 2
        if self.pairs is not None:
            return PairRule(grids, min(self.pairs, possible), forced=True)
        most = d if len(weight) < FEW_ROWS else MANY_PAIRS * d
        alone = self.group_penalty is not None
        return PairRule(grids, min(possible, max(10, most), _MOST_PAIRS), alone=alone)


@dataclass(frozen=True)
class TermAmounts:
    """Penalties of one fitted term, kept so that the rest can be refitted after an edit."""

    columns: tuple[int, ...]
    bend: float
    line: float
    power: float
    group: float


@dataclass(frozen=True)
class FitRecord:
    """What a later refit needs: axes of the columns, and the penalties of the terms."""

    axes: tuple[Axis, ...]
    coarse: tuple[CoarseAxis, ...]
    terms: tuple[TermAmounts, ...]


@dataclass(frozen=True)
class AdditiveFit:
    form: AdditiveScore
    terms: list[FittedTerm]
    path: dict[str, Floats]
    group_penalty: float
    solution: Solution
    record: FitRecord
    pair_amount: float = np.inf
    smoothness_factor: float = 1.0
    held_out: Floats | None = None


def fit_additive(
    settings: FitSettings,
    training: Training | EncodedTraining,
    folds: Sequence[tuple[Ints, Ints]],
    seed: int,
) -> AdditiveFit:
    """Everything from a table, or the encoded rows of a scan, to a certified additive form."""
    y, weight = training.y, training.weight
    if isinstance(training, EncodedTraining):
        encoded = training.encoded
    else:
        axes = learn_axes(training.table, weight, KnotRule(settings.max_knots))
        encoded = encode(training.table, axes)
    singles = single_terms(encoded, weight)
    few, rows = _choice_rows(singles.rows, seed)
    on_few = singles if rows is None else singles.on(few)
    some = slice(None) if rows is None else rows
    rule = settings.pair_rule(on_few, weight[some])
    structure = build(settings.plan, on_few, y[some], weight[some], rule)
    choosing = settings.choosing(HeldOutRows(y[some], weight[some], settings.costs), rows, folds)
    choice = choosing.choice(on_few, rule, structure)
    structure = structure.scaled(choice.factor)
    structure = _at_amount(settings, structure, choice, y[some], weight[some])
    choice = choosing.followed(choice, structure)
    ratio = choice.ratio if choice.points else settings.group_penalty or 0.0
    if rows is not None:
        ratio *= float(np.sqrt(len(rows) / len(y)))
        structure = _on_all_rows(structure, singles)
    stepped = rows is None and settings.relaxed and settings.group_penalty is None
    ratio, structure, solution = _final(settings, structure, y, weight, ratio, stepped)
    fitted = _assembled(settings, training.table.names, structure, solution, ratio, weight, choice)
    held_out = _held_out_proba(choice, rows, len(y)) if choice.points else None
    return replace(
        fitted, pair_amount=choice.amount, smoothness_factor=choice.factor, held_out=held_out
    )


def _held_out_proba(choice: Choice, rows: Ints | None, n_rows: int) -> Floats:
    """Probabilities of every row by the fold that did not see it; NaN where no fold held it out."""
    order = np.concatenate([path.held_out for path in choice.paths])
    proba = probabilities(np.concatenate([path.scores[0] for path in choice.paths], axis=1))
    found = np.full((n_rows, proba.shape[1]), np.nan)
    found[order if rows is None else rows[order]] = proba
    return found


def _choice_rows(rows: EncodedRows, seed: int) -> tuple[EncodedRows, Ints | None]:
    if rows.n_rows <= CHOICE_ROWS:
        return rows, None
    picked = np.random.default_rng(seed).choice(rows.n_rows, CHOICE_ROWS, replace=False)
    picked = np.sort(picked).astype(np.int64)
    return rows.take(picked), picked


def _inside(folds: Sequence[tuple[Ints, Ints]], rows: Ints | None) -> list[Ints]:
    """Held-out rows of every fold, as places among the rows of the choice."""
    if rows is None:
        return [np.asarray(test) for _, test in folds]
    return [np.flatnonzero(np.isin(rows, test)) for _, test in folds]


def _at_amount(
    settings: FitSettings, structure: Structure, choice: Choice, y: Ints, weight: Floats
) -> Structure:
    """The structure, fitted with its weak pairs at the chosen amount, or without them."""
    now = structure.at_amount(choice.amount if structure.weak.any() else np.inf)
    if not choice.points:
        return now
    start = near_start(settings.plan, now, y, weight, choice.guess)
    point = solve_at(settings.plan, now, y, weight, 0.0, start, fold_tol(y)).point
    return replace(now, group_weights=adaptive_weights(now.terms, point), point=point)


def _on_all_rows(structure: Structure, singles: TermSet) -> Structure:
    """The same terms and amounts on all rows, with the scores of the fit on the few."""
    from laconic.additive._numba_rows import score_change

    terms = structure.terms.on(singles.rows)
    point = structure.point
    scores = np.empty((len(point.intercept), singles.rows.n_rows))
    work = np.flatnonzero(terms.rank > 0)
    score_change(*terms.packed, work, point.coordinates, point.intercept, scores)
    smooth = replace(structure.smoothness, terms=terms)
    start = AdditivePoint(point.intercept, point.coordinates, scores)
    return Structure(terms, smooth, structure.group_weights, start, structure.weak)


def _final(
    settings: FitSettings,
    structure: Structure,
    y: Ints,
    weight: Floats,
    ratio: float,
    stepped: bool,
) -> tuple[float, Structure, Solution]:
    """The certified fit of the terms that the penalty leaves, and those terms.

    ``stepped``: they are chosen as the folds chose theirs, by a step for each point of the path.
    More rows than the folds had are not worth so many passes; one fit at the penalty is.
    """
    chosen, kept, point = _chosen_terms(settings, structure, y, weight, ratio, stepped)
    if len(kept):
        structure = structure.part(kept, structure.point if settings.relaxed else point)
    share = 0.0 if settings.relaxed and len(kept) else chosen
    polish = len(y) <= _POLISHED_ROWS
    solution = solve_at(
        settings.plan, structure, y, weight, share, structure.point, settings.tol, polish
    )
    return chosen, structure, solution


def _chosen_terms(
    settings: FitSettings,
    structure: Structure,
    y: Ints,
    weight: Floats,
    ratio: float,
    stepped: bool,
) -> tuple[float, Ints, AdditivePoint]:
    """Terms at ``ratio``; with ``max_terms``, at the least larger penalty that respects it."""

    def at(share: float) -> tuple[Ints, AdditivePoint]:
        found = solve_at(
            settings.plan, structure, y, weight, share, structure.point, _CHOICE_TOL
        ).point
        return support(structure.terms, found), found

    if stepped:
        ratios = (*ratios_below(ratio), ratio) if ratio > 0.0 else ()
        point = stepped_to(settings.plan, structure, y, weight, ratios, structure.point)
        kept = support(structure.terms, point)
    else:
        kept, point = at(ratio)
    most = settings.max_terms
    if most is None or len(kept) <= most:
        return ratio, kept, point
    low, high = max(ratio, 1e-6), 1.0
    kept, point = at(high)
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        trial = at(middle)
        if len(trial[0]) <= most:
            high, (kept, point) = middle, trial
        else:
            low = middle
    return high, kept, point


def _assembled(
    settings: FitSettings,
    names: Sequence[str],
    structure: Structure,
    solution: Solution,
    ratio: float,
    weight: Floats,
    choice: Choice,
) -> AdditiveFit:
    terms, point, points = structure.terms, solution.point, choice.points
    masses = slot_masses(terms, weight)
    found, places = fitted_terms(names, terms, point, masses, settings.signs, choice.paths)
    problem = solution.details["problem"]
    amounts = tuple(
        TermAmounts(
            terms.terms[t].columns,
            float(structure.smoothness.bend[t]),
            float(structure.smoothness.line[t]),
            float(structure.smoothness.power[t]),
            float(problem.group[t]),
        )
        for t in places
    )
    path = {
        "group_penalty": np.array([p.ratio for p in points]),
        "loss": np.array([p.mean for p in points]),
        "log_loss": np.array([p.log_loss for p in points]),
        "n_terms": np.array([p.n_terms for p in points]),
    }
    record = FitRecord(terms.rows.axes, terms.coarse, amounts)
    form = _form(settings, point.intercept, found)
    solution = replace(solution, point=None, details={})
    return AdditiveFit(form, found, path, float(ratio), solution, record)


def _form(settings: FitSettings, intercept: Floats, terms: Sequence[FittedTerm]) -> AdditiveScore:
    link: Link = "logit"
    if len(settings.classes) > 2:
        # adding one number to all intercepts changes nothing: the mean is set to zero
        link, intercept = "softmax", intercept - intercept.mean()
    return AdditiveScore(settings.classes, intercept, tuple(t.form for t in terms), link)


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
    rows = encode(table, record.axes)
    singles = single_terms(rows, weight, coarse=record.coarse)
    amounts = [a for t, a in enumerate(record.terms) if t != fixed]
    pairs = [a.columns for a in amounts if len(a.columns) == 2]
    grids = dict(zip(pairs, pair_terms(singles, pairs, weight), strict=True))
    terms = TermSet(
        rows,
        singles.coarse,
        tuple(
            grids[a.columns] if len(a.columns) == 2 else singles.terms[a.columns[0]]
            for a in amounts
        ),
    )
    smooth = Smoothness(
        terms,
        np.array([a.bend for a in amounts]),
        np.array([a.line for a in amounts]),
        np.array([a.power for a in amounts]),
    )
    group = np.array([a.group for a in amounts])
    problem = settings.plan.problem(terms, y, weight, smooth.diagonal(), group)
    scores = np.zeros((K, len(y)))
    if fixed is not None:
        scores += fitted[fixed].form.contribution(table).T
    start = AdditivePoint(np.zeros(K), np.zeros((K, terms.n_coordinates)), scores)
    solution = solve_additive(problem, start, tol=settings.tol, max_iter=200)
    found, places = fitted_terms(
        table.names, terms, solution.point, slot_masses(terms, weight), settings.signs
    )
    kept = [amounts[t] for t in places]
    if fixed is not None:
        found.append(fitted[fixed])
        kept.append(record.terms[fixed])
        order = sorted(range(len(found)), key=lambda t: -found[t].importance)
        found, kept = [found[t] for t in order], [kept[t] for t in order]
    form = _form(settings, solution.point.intercept, found)
    new = replace(record, terms=tuple(kept))
    return AdditiveFit(form, found, {}, np.nan, replace(solution, point=None, details={}), new)
