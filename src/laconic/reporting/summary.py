"""What a fitted model proves about itself, as numbers with a kind; words come at rendering."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from laconic._typing import Ints
from laconic.core.decisions import expected_costs, positive_class
from laconic.decide.estimator import DecisionClassifier
from laconic.decide.intervals import (
    CONFIDENCE,
    design_effect,
    difference_interval,
    mean_cost_interval,
    paid_difference_interval,
    paid_interval,
)
from laconic.reporting.business import (
    capacity_table,
    cost_table,
    hit_rates,
    read_volume,
    readability_price,
)
from laconic.reporting.curves import class_mix, mix, play, reliability, slider_table
from laconic.reporting.decision_curves import curves_of
from laconic.reporting.measured import (
    Measured,
    decision_model,
    measure,
    row_costs_of,
    with_row_costs,
)
from laconic.reporting.sentences import Sentences
from laconic.reporting.shapes import describe_model, form_of, map_rows


def certificates_of(rows: Measured, spread: dict[str, Any]) -> list[dict[str, Any]]:
    """One dict for each certificate: ``kind``, ``value`` and what its sentence needs.

    Kinds: "measured" (an interval for the cost), "page", "gap", "steps", "edited", "pac_bayes",
    "c_bound", "minimax", "held_out_risks", "compression".
    """
    model = rows.inner
    found: list[dict[str, Any]] = [
        {
            "kind": "measured",
            "value": spread["expected_cost"],
            "low": spread["expected_cost_low"],
            "high": spread["expected_cost_high"],
            "rows": rows.n_rows,
        }
    ]
    found += _page(model)
    found += _gap(model)
    found += _of_votes(model)
    found += _of_minimax(model)
    compression = _largest(model, "compression_")
    if compression is not None:
        found.append({"kind": "compression", "value": compression})
    return found


def promises_of(model: Any, rows: Measured, k: int) -> list[dict[str, Any]]:
    """What the decision rule guarantees, one dict for each promise."""
    held = getattr(model, "guaranteed_", None)
    if held is None:
        return []
    shares = getattr(held, "shares", None)
    found = []
    for one in held.promises:
        name = rows.classes[k] if one.guarantee.of is None else one.guarantee.of
        mix = "free" if one.holds_under_shift else "rows" if shares is None else "box"
        box = {"shares": list(shares)} if shares is not None and mix == "box" else {}
        fields = {key: value for key, value in one.to_dict().items() if key != "of"}
        entry = {"kind": "promise", "value": one.measured, "name": str(name), "mix": mix}
        found.append(entry | box | fields)
    return found


def _promised_threshold(model: Any, rows: Measured, k: int) -> dict[str, Any]:
    """A guaranteed rule decides by its own threshold, not by that of the costs."""
    held = getattr(model, "guaranteed_", None)
    if rows.n_classes != 2 or held is None:
        return {}
    last = float(model.threshold_)
    return {"threshold": last if k == 1 else 1.0 - last}


def _largest(model: Any, name: str) -> float | None:
    value = getattr(model, name, None)
    if value is None:
        return None
    return float(np.max(np.asarray(value, dtype=np.float64), initial=-math.inf))


def _gap(model: Any) -> list[dict[str, Any]]:
    gap = _largest(model, "duality_gap_")
    if gap is None and _holds_steps(model):
        return [{"kind": "steps", "value": None}]
    if gap is None or hasattr(model, "minimax_risk_"):
        return []
    if not math.isfinite(gap):
        return [{"kind": "edited", "value": None}]
    objective = getattr(model, "objective_", getattr(model, "criterion_", None))
    scale = None if objective is None else float(np.max(np.asarray(objective, dtype=np.float64)))
    return [{"kind": "gap", "value": gap, "objective": scale}]


def _page(model: Any) -> list[dict[str, Any]]:
    """The criterion of the last fit of a page, and how much lower it can be at most."""
    strays = getattr(model, "page_objective_", None)
    if not strays:
        return []
    return [{"kind": "page", "value": float(strays), "gap": float(model.page_gap_)}]


def _holds_steps(model: Any) -> bool:
    """Whether boosted steps, which minimise no criterion, are the model or a part of it."""
    from laconic.boosted.estimator import BoostedStepsClassifier

    parts = model, *getattr(model, "estimators_", ())
    return any(isinstance(part, BoostedStepsClassifier) for part in parts)


def _of_votes(model: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if hasattr(model, "pac_bayes_bounds"):
        found += _best_bound(model)
    c_bound = _largest(model, "c_bound_")
    if c_bound is not None:
        found.append({"kind": "c_bound", "value": c_bound})
    return found


def _best_bound(model: Any) -> list[dict[str, Any]]:
    """The smallest bound, with the doubt shared among those it was chosen from."""
    names = {bound.name for bound in model.pac_bayes_bounds(1.0 - CONFIDENCE)}
    if not names:
        return []
    bounds = model.pac_bayes_bounds((1.0 - CONFIDENCE) / len(names))
    # with several votes a bound must hold for each of them: its largest value
    worst = [max((b for b in bounds if b.name == n), key=lambda b: b.value) for n in names]
    best = min(worst, key=lambda bound: (bound.value, bound.name))
    return [
        {
            "kind": "pac_bayes",
            "value": float(best.value),
            "name": best.name,
            "source": best.source,
            "assumption": best.assumption,
            "each_class": len(bounds) > len(names),
        }
    ]


def _of_minimax(model: Any) -> list[dict[str, Any]]:
    if not hasattr(model, "minimax_risk_"):
        return []
    found: list[dict[str, Any]] = [
        {
            "kind": "minimax",
            "value": float(model.minimax_risk_),
            "gap": float(model.duality_gap_),
            "prior": np.asarray(model.least_favorable_prior_).tolist(),
        }
    ]
    risks = getattr(model, "class_risks_oof_", None)
    if risks is not None and np.isfinite(risks).all():
        found.append(
            {
                "kind": "held_out_risks",
                "value": float(np.max(risks)),
                "risks": np.asarray(risks).tolist(),
            }
        )
    return found


# One plain dict that says what a decision model does on rows it has not seen.


FORMAT = "laconic report 1"
Z_95 = 1.96
BULKY = (
    "model", "map", "sliders", "mix", "reliability", "capacity", "cost_sliders", "decision_curves",
)  # fmt: skip
"""Keys that only the page needs; without them the dict stays small enough to read."""


def summarise(
    model: Any,
    X: Any,
    y: Any,
    costs: Any = None,
    *,
    positive: Any = None,
    n_train: int | None = None,
    comparison: Any = None,
    certificates: list[dict[str, Any]] | None = None,
    baseline: Any = None,
    cases: Any = None,
    currency: str | None = None,
    seed: int = 0,
    by_row: Any = None,
    clusters: Any = None,
    champion: tuple[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure ``model`` on test rows.

    Parameters
    ----------
    model : fitted DecisionClassifier, or any fitted classifier
        A ``LaconicClassifier`` is read through its ``decision_``.
    X, y : rows that the fit has not seen, and their classes
    costs : as in DecisionClassifier, default=None
        Rows are the true class, columns the decision; or costs of each row. None: those of the
        model.
    positive : class, default=None
        The class that "fp", "fn", the threshold and the curves are about. None: the model's, the
        larger of 0/1, -1/+1, False/True or no/yes, else the rarer one in ``y``.
    n_train : int, default=None
        Rows of the fit; None when that is not known.
    comparison : frame or mapping of columns, default=None
        Candidates that were compared: ``candidate``, ``cost``, ``size`` and, when known,
        ``cost_se``, ``worst_class_risk``, ``log_loss``, ``auc``, ``fit_seconds``, ``certificate``,
        ``chosen``.
    certificates : list of dict, default=None
        More certificates, each with ``title``, ``says`` and ``assumes``.
    baseline : fitted classifier, default=None
        A plain model, for instance logistic regression, to compare with.
    cases : str or float, default=None
        How many cases come in a period, such as "5000/month": costs and counts are told for it.
    currency : str, default=None
        The unit of the costs, such as "EUR".
    seed : int, default=0
        Of the rows drawn for the map.
    by_row : array of shape (n, K, K), default=None
        What errors cost on each row; the sliders then play with the means of the classes.
    clusters : array of shape (n,), default=None
        Rows with the same entry go together (copies, visits of one patient): intervals are wider.
    champion : (str, array of shape (n, K)), default=None
        Name of the model in use and its probabilities for these rows.

    Returns
    -------
    dict
        Numbers, texts, lists and dicts only: ``json.dumps`` takes it, and equal models on equal
        rows give equal dicts.
    """
    volume = read_volume(cases, currency)
    if comparison is None:
        comparison = getattr(model, "comparison_", None)
    price = readability_price(model)
    positive = getattr(model, "positive_", None) if positive is None else positive
    if by_row is None:
        by_row = row_costs_of(model, costs, positive, len(y))
        costs = costs if by_row is None else None
    model = decision_model(model, costs, positive)
    rows = with_row_costs(measure(model, X, y, costs, positive), by_row)
    rows = replace(rows, clusters=clusters)
    k = _positive_place(rows, positive)
    sliders = slider_table(rows, k, baseline, X)
    trust = reliability(rows, k, None if rows.by_row is not None else sliders)
    described = describe_model(rows, X, k)
    spread = _headline(rows)
    found = {
        "format": FORMAT,
        "classes": [str(name) for name in rows.classes],
        "shares": (rows.class_rows / rows.n_rows).tolist(),
        "positive": str(rows.classes[k]),
        "rows": {"train": None if n_train is None else int(n_train), "test": rows.n_rows},
        "costs": rows.costs.tolist(),
        "costs_by_row": rows.by_row is not None,
        "reject_cost": rows.reject_cost,
        "prior": None if rows.prior is None else rows.prior.tolist(),
        "prior_factors": _prior_factors(rows),
        "volume": volume,
        **spread,
        **hit_rates(rows, k),
        "price": price,
        "baselines": _baselines(rows, sliders, baseline, X, y),
        "baseline_name": None if baseline is None else _baseline_name(baseline),
        "alternatives": _alternatives(rows, baseline, X, y),
        "champion": _champion(rows, champion, comparison),
        **_threshold_numbers(rows, k, sliders),
        **_promised_threshold(model, rows, k),
        "certificates": [*certificates_of(rows, spread), *promises_of(model, rows, k)],
        "comparison": columns_of(comparison),
        "model": described,
        "sliders": sliders,
        "mix": class_mix(rows),
        "capacity": capacity_table(rows, k),
        "cost_sliders": cost_table(rows),
        "reliability": trust,
        "decision_curves": curves_of(rows, k, getattr(model, "guaranteed_", None)),
        "map": map_rows(
            rows,
            X,
            form=form_of(rows.inner)[0],
            zone=trust[0].get("zone") if trust else None,
            k=k,
            seed=seed,
        ),
    }
    for more in certificates or []:
        found["certificates"].append({"kind": "given", "value": None, **more})
    return found


def compact(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary without what only the page needs, nor the seconds that change at every run."""
    found = {key: value for key, value in summary.items() if key not in BULKY}
    # in words too: a model card is written where this room is not
    proofs = Sentences(summary).proofs()
    found["certificates"] = [
        entry | words for entry, words in zip(summary["certificates"], proofs, strict=True)
    ]
    if found["comparison"] is not None:
        kept = {k: v for k, v in found["comparison"].items() if k != "fit_seconds"}
        found["comparison"] = kept
    return found


def _positive_place(rows: Measured, positive: Any) -> int:
    """The positive class; where nobody says which, the page speaks of the rarer one."""
    known = positive_class(rows.classes, positive)
    if known is not None:
        return rows.classes.index(known)
    counts = rows.class_rows
    rarest = int(counts.argmin())
    return rows.n_classes - 1 if counts[rarest] == counts[-1] else rarest


def _prior_factors(rows: Measured) -> list[float]:
    """By what the rule multiplies each probability before it normalises them."""
    if rows.prior is None or rows.train_prior is None:
        return [1.0] * rows.n_classes
    seen = rows.train_prior > 0
    safe = np.where(seen, rows.train_prior, 1.0)
    return np.where(seen, rows.prior / safe, 0.0).tolist()  # type: ignore[no-any-return]


def _headline(rows: Measured) -> dict[str, Any]:
    """Costs at the deployed class mix; without a ``prior`` that is the mix of the rows."""
    cost = rows.cost_of_rows()
    counts = rows.confusion()
    weight = np.ones(rows.n_rows)
    if rows.prior is not None:
        weight = (rows.prior / np.maximum(rows.class_rows, 1))[rows.truth]
    weight = weight / weight.sum()
    mean = float(weight @ cost)
    # within classes, since their shares are given and not drawn
    variance = 0.0
    for code in range(rows.n_classes):
        of_class = rows.truth == code
        if of_class.any():
            share = float(weight[of_class].sum())
            variance += share**2 * float(cost[of_class].var()) / int(of_class.sum())
    if rows.by_row is None:
        fewer = counts[:, : rows.paid().shape[1]] / design_effect(cost, rows.clusters)
        low, high = mean_cost_interval(fewer, rows.paid(), rows.prior, CONFIDENCE)
    else:
        repeats = design_effect(cost, rows.clusters)
        low, high = paid_interval(rows.n_rows * weight * cost, float(rows.by_row.max()), repeats)
    decided = mix(class_mix(rows), [0] * rows.n_classes)["decided"]
    return {
        "confusion": counts[:, : rows.n_classes].tolist(),
        "abstentions": counts[:, rows.n_classes].tolist(),
        "decisions_per_1000": decided[: rows.n_classes],
        "abstentions_per_1000": decided[rows.n_classes] if len(decided) > rows.n_classes else 0.0,
        "expected_cost": mean,
        "expected_cost_se": math.sqrt(variance),
        "expected_cost_low": low,
        "expected_cost_high": high,
    }


def _baselines(rows: Measured, sliders: Any, baseline: Any, X: Any, y: Any) -> dict[str, float]:
    if rows.by_row is not None:
        return _baselines_by_row(rows, baseline, X, y)
    still = mix(class_mix(rows), [0] * rows.n_classes)
    found = {
        f"always {name}": cost for name, cost in zip(rows.classes, still["always"], strict=True)
    }

    def cost_of(decided: Ints) -> float:
        risks = np.bincount(rows.truth, rows.costs[rows.truth, decided], minlength=rows.n_classes)
        return float(np.array(still["shares"]) @ (risks / np.maximum(rows.class_rows, 1)))

    if rows.proba is not None:
        found["the likeliest class"] = cost_of(rows.proba.argmax(axis=1))
    if sliders is None and baseline is not None:
        found["plain model"] = cost_of(_simple_decisions(rows, baseline, X, y)["plain model"])
    if sliders is not None and len(sliders["rules"]) > 1:
        found["plain model"] = play(sliders, rule=1)["cost"]
    return found


def _simple_decisions(rows: Measured, baseline: Any, X: Any, y: Any) -> dict[str, Ints]:
    """Decisions of the rules without a model, and of a plain one."""
    found = {f"always {name}": np.full(rows.n_rows, k) for k, name in enumerate(rows.classes)}
    if baseline is not None:
        plain = measure(decision_model(baseline, rows.costs), X, y, rows.costs)
        found["plain model"] = with_row_costs(plain, rows.by_row).decided
    return found


def _baselines_by_row(rows: Measured, baseline: Any, X: Any, y: Any) -> dict[str, float]:
    places = _simple_decisions(rows, baseline, X, y)
    if rows.proba is not None:
        places["the likeliest class"] = rows.proba.argmax(axis=1)
    return {name: float(rows.price_of(np.maximum(d, 0)).mean()) for name, d in places.items()}


def _alternatives(rows: Measured, baseline: Any, X: Any, y: Any) -> dict[str, list[float]]:
    """What this model costs more than a simple one on the same rows, with an interval."""
    return _differences(rows, _simple_decisions(rows, baseline, X, y))


def _champion(rows: Measured, given: Any, comparison: Any) -> dict[str, Any] | None:
    """The model in use: what this one costs more, with an interval, on these rows or on folds."""
    if given is not None:
        name, proba = given
        costs = rows.costs if rows.by_row is None else rows.by_row
        decided = {name: expected_costs(np.asarray(proba), costs).argmin(axis=1)}
        more = _differences(rows, decided)[name]
        cost = float(rows.price_of(decided[name]).mean())
        return {"name": name, "cost": cost, "more": more, "on": "rows"}
    table = columns_of(comparison) or {}
    own = [
        k for k, mine in enumerate(table.get("own", [])) if mine and table["cost"][k] is not None
    ]
    if not own:
        return None
    k = min(own, key=lambda place: float(table["cost"][place]))
    more, reach = -table["above_kept"][k], Z_95 * table["above_kept_se"][k]
    ends = [more, more - reach, more + reach]
    return {"name": table["candidate"][k], "cost": table["cost"][k], "more": ends, "on": "folds"}


def _differences(rows: Measured, places: dict[str, Ints]) -> dict[str, list[float]]:
    """Mean difference in cost to other decisions on the same rows, with its interval."""
    own = np.where(rows.decided < 0, rows.n_classes, rows.decided)
    found = {}
    for name, other in places.items():
        other = np.where(other < 0, rows.n_classes, other)
        price = rows.paid()
        width = price.shape[1]
        if other.max() >= width:  # a baseline that abstains where this model may not
            continue
        each = rows.cost_of_rows() - rows.price_of(np.minimum(other, rows.n_classes - 1))
        repeats = design_effect(each, rows.clusters)
        if rows.by_row is not None:
            low, high = paid_difference_interval(each, float(rows.by_row.max()), repeats)
            found[name] = [float(each.mean()), low, high]
            continue
        counts = np.zeros((rows.n_classes, width * width))
        np.add.at(counts, (rows.truth, own * width + other), 1.0)
        more = (price[:, :, None] - price[:, None, :]).reshape(rows.n_classes, -1)
        low, high = difference_interval(counts / repeats, more, rows.prior, CONFIDENCE)
        shares = rows.class_rows / rows.n_rows if rows.prior is None else rows.prior
        within = (counts * more).sum(axis=1) / np.maximum(rows.class_rows, 1)
        found[name] = [float(shares @ within), low, high]
    return found


def _baseline_name(model: Any) -> str | None:
    """None for plain logistic regression, which has words of its own; else its class."""
    # a forest has an estimator_ too: the tree that it grows
    wrapped = getattr(model, "decision_", model)
    inner = wrapped.estimator_ if isinstance(wrapped, DecisionClassifier) else wrapped
    steps = getattr(inner, "steps", None)  # a pipeline is named after its last step
    inner = steps[-1][1] if steps else inner
    plain = ("PlainLogisticRegression", "LogisticRegression", "LogisticRegressionCV")
    name = type(inner).__name__
    return None if name in plain else name


def _threshold_numbers(rows: Measured, k: int, sliders: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"log_loss": None, "threshold": None, "auc": None}
    if rows.raw is None:
        return found
    found["log_loss"] = float(log_loss(rows.truth, rows.raw, labels=range(rows.n_classes)))
    if sliders is not None and rows.by_row is None:  # else every row has its own
        found["threshold"] = play(sliders)["threshold"]
    if rows.n_classes == 2 and rows.class_rows.all():
        found["auc"] = float(roc_auc_score(rows.truth == k, rows.raw[:, k]))
    return found


def columns_of(comparison: Any) -> dict[str, list[Any]] | None:
    """Columns of plain values from a mapping or a frame."""
    if comparison is None:
        return None
    if not isinstance(comparison, dict):
        names = list(comparison.columns)
        comparison = {name: comparison[name] for name in names}
    found = {str(name): [_plain(cell) for cell in column] for name, column in comparison.items()}
    for needed in ("candidate", "cost", "size"):
        if needed not in found:
            raise ValueError(f"comparison lacks the column {needed!r}; it has {sorted(found)}.")
    return found


def _plain(cell: Any) -> Any:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    return cell if cell is None or isinstance(cell, bool | int | float) else str(cell)
