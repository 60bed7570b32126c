r"""Decisions of least expected cost: cost matrices, thresholds, gray zones, class priors.

Everywhere, ``costs[k, d]`` is the cost of decision ``d`` when the class is ``k``: **rows are the
true class, columns the decision**. With class probabilities p, decision ``d`` costs
:math:`\sum_k p_k\, \mathrm{costs}[k, d]` on average and the best decision is the cheapest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic._typing import Floats

_SHORTHAND = {"tn": (0, 0), "fp": (0, 1), "fn": (1, 0), "tp": (1, 1)}
_FORMS = (
    'a shorthand {"fp": 1, "fn": 10}, a K x K array, a frame or dict of dicts with class names '
    "(rows = true class, columns = decision), or per-row costs of shape n x K x K"
)


_NEGATIVE_OF = {"1": ("0", "-1"), "true": ("false",), "yes": ("no",), "oui": ("non",)}


def positive_class(classes: ArrayLike, positive: Any = None) -> Any:
    """The positive class: the one named, else that of 0/1, -1/+1, False/True or no/yes, else None.

    Numbers, truth values and yes may be written in any way, as they are in files. Other labels do
    not say which of them is positive, and their alphabetical order is no reason.

    >>> positive_class([0, 1]), positive_class(["bad", "ok"]), positive_class(["bad", "ok"], "bad")
    (1, None, 'bad')
    >>> positive_class(["No", "Yes"])
    'Yes'
    """
    labels = np.asarray(classes).tolist()
    if positive is not None:
        found = [label for label in labels if str(label) == str(positive)]
        if not found:
            raise ValueError(
                f"positive={positive!r} is not a class; the classes are {labels}."
                + _numbered(labels)
            )
        return found[0]
    texts = [_plain_text(label) for label in labels]
    if len(texts) == 2:
        for k, text in enumerate(texts):
            if texts[1 - k] in _NEGATIVE_OF.get(text, ()):
                return labels[k]
    return None


def _plain_text(label: Any) -> str:
    number = isinstance(label, int | float) and not isinstance(label, bool)
    return f"{label:g}" if number else str(label).lower()


def _numbered(labels: list[Any]) -> str:
    """What to do where scikit-learn has put numbers in the place of the class names."""
    if labels != list(range(len(labels))):
        return ""
    return (
        " Where scikit-learn numbers the classes (cross_val_predict of probabilities does), give "
        "the costs as a matrix, in the sorted order of the classes."
    )


def _positive_place(labels: list[Any], positive: Any, what: str, instead: str) -> int:
    """Where the positive one of two classes is; an error with the remedy when nobody knows."""
    found = positive_class(labels, positive)
    if found is None:
        first, last = labels
        raise ValueError(
            f"{what}: which of the classes {first!r} and {last!r} is positive is not known; say "
            f"positive={first!r} or positive={last!r}, or name the classes: {instead}."
        )
    return labels.index(found)


def cost_matrix(
    costs: Any, classes: ArrayLike, *, n_rows: int | None = None, positive: Any = None
) -> Floats:
    """Any accepted spelling of costs as an array, rows = true class, columns = decision.

    Parameters
    ----------
    costs : None, mapping, frame or array-like
        - None: every error costs 1.
        - ``{"fp": 1, "fn": 10}``, two classes only: a false positive, a false negative.
          ``"tn"`` and ``"tp"`` may be added and are 0 otherwise. Each may also be one number per
          row (also as a frame with these columns).
        - ``{true: {decision: cost}}`` or a frame with the true classes as index and the decisions
          as columns. In a dict, a missing diagonal cost is 0.
        - a K x K array in the order of ``classes``, or n x K x K: one matrix per row.

        A number below 0 is a gain. A right decision may bring one, an error only where the right
        decision of that class brings as much or more.
    classes : array-like of shape (K,)
    n_rows : int, optional
        When given, per-row costs are accepted and must have this many rows.
    positive : class, optional
        The class that "fp" and "fn" are about; needed unless :func:`positive_class` knows it.

    Returns
    -------
    ndarray of shape (K, K), or (n_rows, K, K) for per-row costs

    Examples
    --------
    >>> cost_matrix({"fp": 1, "fn": 10}, ["bad", "ok"], positive="bad")
    array([[ 0., 10.],
           [ 1.,  0.]])
    >>> cost_matrix({"spam": {"ham": 10}, "ham": {"spam": 1}}, ["ham", "spam"])
    array([[ 0.,  1.],
           [10.,  0.]])
    """
    labels = np.asarray(classes).tolist()
    if costs is None:
        return 1.0 - np.eye(len(labels))
    if _is_shorthand(costs):
        matrix = _from_shorthand(costs, labels, positive)
    elif isinstance(costs, Mapping):
        _refuse_half_shorthand(costs, labels)
        matrix = _from_names(costs, labels)
    elif hasattr(costs, "columns") and hasattr(costs, "index"):
        by_row = {row: dict(costs.loc[row]) for row in costs.index}
        matrix = _from_names(by_row, labels)
    elif hasattr(costs, "columns"):
        raise TypeError(f"costs: a frame without an index has no true classes; give {_FORMS}.")
    else:
        try:
            matrix = np.asarray(costs, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"costs must be {_FORMS}; got {type(costs).__name__}.") from None
    matrix = _checked(matrix, len(labels), n_rows)
    _refuse_gainful_errors(matrix, labels)
    return matrix


def _is_shorthand(costs: Any) -> bool:
    keys = costs.keys() if isinstance(costs, Mapping) else getattr(costs, "columns", ())
    if not len(keys) or not {str(key) for key in keys} <= set(_SHORTHAND):
        return False
    return not any(isinstance(costs[key], Mapping) for key in keys)


def _refuse_half_shorthand(costs: Mapping[Any, Any], labels: list[Any]) -> None:
    """A slip in the shorthand is not taken for the name of a class."""
    odd = [key for key in costs if str(key) not in _SHORTHAND]
    if odd and len(odd) < len(costs) and not {*map(str, costs)} <= {*map(str, labels)}:
        raise ValueError(
            f'costs: {odd[0]!r} is none of fp, fn, tn and tp; give {{"fp": 1, "fn": 10}}.'
        )


def _from_shorthand(costs: Any, labels: list[Any], positive: Any) -> Floats:
    if len(labels) != 2:
        raise ValueError(
            f"costs: the fp/fn shorthand is for two classes, here are {len(labels)}; give a matrix "
            "(rows = true class, columns = decision)."
        )
    keys = costs.keys() if isinstance(costs, Mapping) else costs.columns
    entries = {str(key): np.asarray(costs[key], dtype=np.float64) for key in keys}
    for needed in ("fp", "fn"):
        if needed not in entries:
            raise ValueError(f'costs: the shorthand lacks {needed!r}; give {{"fp": 1, "fn": 10}}.')
    try:
        shape = np.broadcast_shapes(*(value.shape for value in entries.values()))
    except ValueError:
        sizes = {key: value.shape for key, value in entries.items()}
        raise ValueError(f"costs: fp and fn have different lengths: {sizes}.") from None
    matrix = np.zeros((*shape, 2, 2))
    for key, value in entries.items():
        matrix[(..., *_SHORTHAND[key])] = value
    turned = matrix[..., ::-1, ::-1]
    if positive is None and np.array_equal(matrix, turned):
        return matrix  # both classes cost the same: it does not matter which is positive
    first, last = labels
    named = f"{{{first!r}: {{{last!r}: 10}}, {last!r}: {{{first!r}: 1}}}}, truth before decision"
    return matrix if _positive_place(labels, positive, "costs", named) else turned


def _from_names(costs: Mapping[Any, Any], labels: list[Any]) -> Floats:
    rows = _by_class(costs, labels, "true class (row)")
    matrix = np.empty((len(labels), len(labels)))
    for k, row in enumerate(rows):
        label = labels[k]
        if row is None:
            raise ValueError(f"costs: no row for the true class {label!r}.")
        if not isinstance(row, Mapping):
            raise TypeError(
                f"costs[{label!r}] must map decisions to costs, got {row!r}; give {_FORMS}."
            )
        for d, cost in enumerate(_by_class(row, labels, "decision (column)")):
            if cost is None and d != k:
                raise ValueError(
                    f"costs: no cost for deciding {labels[d]!r} when the class is {label!r}."
                )
            matrix[k, d] = 0.0 if cost is None else float(cost)
    return matrix


def _by_class(entries: Mapping[Any, Any], labels: list[Any], what: str) -> list[Any]:
    """Values in the order of the classes; names may be texts of the labels, as read from files."""
    texts = {str(label): position for position, label in enumerate(labels)}
    values: list[Any] = [None] * len(labels)
    for key, value in entries.items():
        if str(key) not in texts:
            raise ValueError(
                f"costs: {what} {key!r} is not a class; the classes are {labels}."
                + _numbered(labels)
            )
        values[texts[str(key)]] = value
    return values


def _checked(matrix: Floats, n_classes: int, n_rows: int | None) -> Floats:
    square = (n_classes, n_classes)
    if matrix.ndim not in (2, 3) or matrix.shape[-2:] != square:
        raise ValueError(
            f"costs have shape {matrix.shape}, but there are {n_classes} classes: expected "
            f"{square} (rows = true class, columns = decision), or (n_rows, {n_classes}, "
            f"{n_classes}) for per-row costs."
        )
    if matrix.ndim == 3 and n_rows is None:
        raise ValueError("costs: per-row costs are given where one cost matrix is needed.")
    if matrix.ndim == 3 and len(matrix) != n_rows:
        raise ValueError(f"costs are given for {len(matrix)} rows, but there are {n_rows} rows.")
    if not np.isfinite(matrix).all():
        raise ValueError("costs must be finite numbers.")
    return matrix


def _refuse_gainful_errors(matrix: Floats, labels: list[Any]) -> None:
    """An error that gains, and more than the right decision, is a slip of sign."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1)[..., :, None]
    odd = (matrix < 0) & (matrix < right)
    if odd.any():
        *row, k, d = np.argwhere(odd)[0].tolist()
        where = f" in row {row[0] + 1}" if row else ""
        raise ValueError(
            f"costs: deciding {labels[d]!r} when the class is {labels[k]!r} costs "
            f"{matrix[(*row, k, d)]:g}{where}, a gain larger than that of deciding right; give "
            "an error a cost that is not negative."
        )


def class_codes(values: NDArray[Any], classes: ArrayLike, name: str) -> NDArray[np.int64]:
    """Position of each value among the classes; a value that is none of them is an error.

    >>> class_codes(np.array(["b", "a"]), ["a", "b"], "y")
    array([1, 0])
    """
    labels = np.asarray(classes)
    if labels.dtype.kind in "biufU" and values.dtype.kind == labels.dtype.kind:
        order = np.argsort(labels)
        nearest = np.searchsorted(labels, values, sorter=order).clip(max=len(labels) - 1)
        codes = np.asarray(order[nearest], dtype=np.int64)
        strange = labels[codes] != values
    else:  # values that need not have an order, such as numbers beside texts
        place = {label: k for k, label in enumerate(labels.tolist())}
        codes = np.array([place.get(value, -1) for value in values.tolist()], dtype=np.int64)
        strange = codes < 0
    if strange.any():
        value = values[strange].tolist()[0]
        raise ValueError(
            f"{name} holds {value!r}, which is not among the classes {labels.tolist()}."
        )
    return codes


def expected_costs(proba: Floats, matrix: Floats) -> Floats:
    """Expected cost of every decision, n x K: ``sum_k proba[i, k] * matrix[k, d]``.

    The sum runs over the classes in order and not through a matrix product, so that the numbers
    of a row do not depend on the rows beside it.
    """
    total = np.zeros((len(proba), matrix.shape[-1]))
    for k in range(proba.shape[1]):
        total += proba[:, k, None] * matrix[..., k, :]
    return total


def decision_threshold(costs: Any, positive: Any = None) -> float:
    r"""Probability of the positive class above which deciding it is cheaper.

    .. math:: t = \frac{c_{01} - c_{00}}{(c_{01} - c_{00}) + (c_{10} - c_{11})}

    which is :math:`c_- / (c_+ + c_-)` when right decisions are free, with :math:`c_-` the cost of
    a false positive and :math:`c_+` that of a false negative.

    Parameters
    ----------
    costs : mapping, frame or array-like
        A two-class cost matrix (the second class is positive) or ``{"fp": ..., "fn": ...}``; see
        :func:`cost_matrix`.
    positive : class, optional
        Which of the named classes is positive; needed when the costs name texts.

    Returns
    -------
    float
        ``-inf`` when the positive decision is cheaper whatever the class, ``inf`` when the
        negative one is.

    Examples
    --------
    >>> decision_threshold({"fp": 1, "fn": 9})
    0.1
    >>> decision_threshold([[0, 1], [10, 1]])
    0.1
    """
    matrix = _two_class_matrix(costs, positive)
    false_positive = float(matrix[0, 1] - matrix[0, 0])
    false_negative = float(matrix[1, 0] - matrix[1, 1])
    if false_positive < 0 and false_negative < 0:
        raise ValueError(
            "costs: both right decisions cost more than both errors. Are these gains, or are the "
            "columns swapped? Rows are the true class, columns the decision, numbers are costs."
        )
    if false_positive == 0 and false_negative == 0:
        raise ValueError("costs: both decisions cost the same whatever the class.")
    if false_positive < 0:
        return -math.inf
    if false_negative < 0:
        return math.inf
    # scaling by a power of two is exact, and keeps the sum of huge costs from overflowing
    _, exponent = math.frexp(max(false_positive, false_negative))
    false_positive = math.ldexp(false_positive, -exponent)
    return false_positive / (false_positive + math.ldexp(false_negative, -exponent))


def class_names_of(costs: Any) -> NDArray[Any] | None:
    """The class names that costs carry, sorted; None when they carry none."""
    if costs is None or _is_shorthand(costs):
        return None
    if isinstance(costs, Mapping):
        found = {*costs, *(d for row in costs.values() if isinstance(row, Mapping) for d in row)}
    elif hasattr(costs, "columns") and hasattr(costs, "index"):
        found = {*costs.index, *costs.columns}
    else:
        return None
    return np.unique(np.array(list(found)))


def _two_class_matrix(costs: Any, positive: Any) -> Floats:
    """Costs of two classes, the positive one last."""
    names = class_names_of(costs)
    labels = [0, 1] if names is None else names.tolist()
    matrix = cost_matrix(costs, labels)
    if matrix.shape != (2, 2):
        raise ValueError(f"A threshold needs two classes; the costs are for {len(matrix)}.")
    if names is None or np.array_equal(matrix, matrix[::-1, ::-1]):
        return matrix
    known = _positive_place(labels, positive, "costs", "as 0 and 1")
    return matrix if known else matrix[::-1, ::-1]


def reject_zone(costs: Any, reject_cost: float, positive: Any = None) -> tuple[float, float] | None:
    """Probabilities of the positive class between which abstaining is the cheapest.

    Examples
    --------
    >>> low, high = reject_zone({"fp": 1, "fn": 4}, reject_cost=0.4)
    >>> round(low, 3), round(high, 3)
    (0.1, 0.6)
    >>> reject_zone({"fp": 1, "fn": 4}, reject_cost=0.9) is None
    True
    """
    matrix = _two_class_matrix(costs, positive)
    (right_negative, false_positive), (false_negative, right_positive) = matrix.tolist()
    low = _crossing(false_negative - right_negative, reject_cost - right_negative, 0.0)
    high = 1.0 - _crossing(false_positive - right_positive, reject_cost - right_positive, 0.0)
    return (low, high) if low < high else None


def _crossing(rise: float, room: float, never: float) -> float:
    """Where a cost that rises by ``rise`` from 0 to 1 uses up its ``room``, within [0, 1]."""
    if room < 0:
        return never
    return 1.0 if rise <= room else room / rise


def gray_zone(threshold: float, width: float) -> tuple[float, float]:
    r"""Interval of probabilities around a decision threshold, centred on it in log-odds.

    The two ends are :math:`\sigma(\mathrm{logit}\,t \mp h)` with the half-width h such that
    ``p_max - p_min == width``. With :math:`c = \cosh\,\mathrm{logit}\,t`, the number
    :math:`e^h` solves :math:`(1-w) e^{2h} - 2 w c\, e^h - (1+w) = 0`.

    Parameters
    ----------
    threshold : float in (0, 1)
        For instance :func:`decision_threshold` of the costs.
    width : float in [0, 1]
        ``p_max - p_min``, a difference of probabilities. 0 gives the threshold itself and 1 gives
        (0, 1), the whole range.

    Notes
    -----
    Hérault and Grandvalet (2008) describe the intervals of their Table 3 as centred by
    :math:`\sqrt{p_{min} p_{max}}`; the numbers printed there are centred in log-odds.

    Examples
    --------
    >>> p_min, p_max = gray_zone(20_510 / 232_350, 0.11)
    >>> round(p_min, 3), round(p_max, 3)
    (0.048, 0.158)
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must lie strictly between 0 and 1, got {threshold!r}.")
    if not 0 <= width <= 1:
        raise ValueError(f"width is a difference of probabilities in [0, 1], got {width!r}.")
    if width == 0:
        return float(threshold), float(threshold)
    if width == 1:
        return 0.0, 1.0
    odds = threshold / (1 - threshold)
    centre = (odds + 1 / odds) / 2
    root = math.sqrt((width * centre) ** 2 + (1 - width) * (1 + width))
    factor = (width * centre + root) / (1 - width)
    p_min = odds / (odds + factor)
    p_max = odds / (odds + 1 / factor)
    return p_min, p_max


def class_prior(
    prior: Any, classes: ArrayLike, name: str = "prior", positive: Any = None
) -> Floats:
    """Class shares as K numbers that sum to one.

    ``prior`` is one number (two classes: the share of the positive one), K numbers in the order of
    ``classes``, a mapping from class to share, or ``"balanced"``: equal shares.

    >>> class_prior(0.02, ["ham", "spam"], positive="spam")
    array([0.98, 0.02])
    >>> class_prior({"spam": 0.02, "ham": 0.98}, ["ham", "spam"])
    array([0.98, 0.02])
    """
    labels = np.asarray(classes).tolist()
    if isinstance(prior, str):
        if prior != "balanced":
            raise ValueError(f"{name} as a text can only be 'balanced', got {prior!r}.")
        return np.full(len(labels), 1.0 / len(labels))
    if isinstance(prior, Mapping):
        texts = {str(key): share for key, share in prior.items()}
        if set(texts) != {str(label) for label in labels}:
            raise ValueError(f"{name} must name every class once; the classes are {labels}.")
        shares = np.array([texts[str(label)] for label in labels], dtype=np.float64)
    else:
        shares = np.asarray(prior, dtype=np.float64)
    if shares.ndim == 0 and len(labels) == 2:
        named = f"{{{labels[0]!r}: {float(shares):g}, {labels[1]!r}: {1 - float(shares):g}}}"
        known = shares == 0.5 or _positive_place(labels, positive, name, named)
        share = float(shares if known else 1.0 - shares)
        shares = np.array([1.0 - share, share])
    if shares.shape != (len(labels),):
        raise ValueError(
            f"{name} must hold {len(labels)} class shares (classes: {labels}), got shape "
            f"{shares.shape}."
        )
    if not (shares >= 0).all() or abs(shares.sum() - 1.0) > 1e-6:
        raise ValueError(f"{name} must hold shares >= 0 that sum to 1, got {shares.tolist()}.")
    return np.asarray(shares / shares.sum())


def correct_prior(proba: ArrayLike, train_prior: Any, prior: Any) -> Floats:
    r"""Probabilities under another class mix: :math:`p'_k \propto p_k\,\pi_k / \pi^{train}_k`.

    Exact when only the class shares move and each class keeps its distribution (label shift).

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Probabilities that are right under ``train_prior``.
    train_prior, prior : float, array-like of shape (K,), mapping or "balanced"
        Class shares in training and where the model is used; see :func:`class_prior`.

    Returns
    -------
    ndarray of shape (n, K)
        Where a row gives no probability to any class of positive prior, the prior itself.

    Examples
    --------
    >>> correct_prior([[0.5, 0.5]], train_prior=0.5, prior=0.1)
    array([[0.9, 0.1]])
    """
    probabilities = np.asarray(proba, dtype=np.float64)
    if probabilities.ndim != 2:
        raise ValueError(f"proba must be n x K, got shape {probabilities.shape}.")
    classes = np.arange(probabilities.shape[1])
    old = class_prior(train_prior, classes, "train_prior")
    new = class_prior(prior, classes)
    unknown = (old == 0) & (new > 0)
    if unknown.any():
        k = int(np.argmax(unknown))
        raise ValueError(
            f"prior gives the class at position {k} a share of {new[k]:g}, but train_prior gives "
            "it none: nothing is known of that class."
        )
    ratio = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
    # scaled by the largest ratio, so that a tiny train prior cannot overflow
    weighted = probabilities * (ratio / ratio.max())
    total = _row_sums(weighted)
    none = total == 0
    return np.asarray(np.where(none, new, weighted / np.where(none, 1.0, total)))


def _row_sums(values: Floats) -> Floats:
    """Sums over the classes in order: the same for a row whatever the rows beside it."""
    total = np.zeros((len(values), 1))
    for k in range(values.shape[1]):
        total += values[:, k, None]
    return total
