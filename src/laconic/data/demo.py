"""A generated table that looks like a real decision: card payments, few of them fraud."""

from __future__ import annotations

import csv
import io

import numpy as np
from numpy.typing import NDArray

from laconic.data.tables.columns import Schema, Table

DEMO_COSTS = {"fp": 1.0, "fn": 25.0}
"""A false alarm costs one call to the customer; a missed fraud costs about 25 of them."""


def make_payments(n_rows: int = 8_000, *, random_state: int = 0) -> tuple[Table, NDArray[np.str_]]:
    """Card payments with the label ``fraud`` (about 3 %) or ``genuine``.

    The log-odds of fraud are a sum of a few effects that a reader can check on the fitted model:
    they rise with the amount (more so when the card is not present), with declines in the last
    day, at night, and for three merchant categories; they fall with the age of the card. Days
    since the last payment are missing for first payments, which are riskier; the postcode digit
    has no effect.

    >>> payments, label = make_payments(1000)
    >>> payments.names[:3]
    ('amount', 'hour', 'merchant')
    """
    draw = np.random.default_rng(random_state)
    amount = np.round(np.exp(draw.normal(3.4, 1.2, n_rows)), 2)
    hour = np.clip(np.round(draw.normal(14, 5, n_rows)), 0, 23)
    merchant = draw.choice(
        ["groceries", "fuel", "restaurant", "travel", "electronics", "gift cards", "clothing"],
        n_rows,
        p=[0.32, 0.14, 0.2, 0.07, 0.09, 0.03, 0.15],
    )
    present = draw.random(n_rows) < 0.7
    declines = draw.poisson(0.25, n_rows).astype(float)
    card_days = np.round(draw.gamma(2.0, 400.0, n_rows))
    gap_days = np.round(draw.exponential(6.0, n_rows), 1)
    gap_days[draw.random(n_rows) < 0.05] = np.nan
    postcode = draw.integers(0, 10, n_rows).astype(float)

    risky = {"gift cards": 2.0, "electronics": 1.0, "travel": 0.5}
    score = -5.8 + np.array([risky.get(kind, 0.0) for kind in merchant])
    score += 0.45 * np.maximum(np.log(amount) - 3.0, 0.0) * np.where(present, 0.6, 2.0)
    score += 1.1 * np.minimum(declines, 3.0) + 1.8 * ((hour < 6) | (hour > 22))
    score += 0.8 * (~present) + 1.2 * np.isnan(gap_days) + 2.0 * np.exp(-card_days / 120.0)
    label = np.where(draw.random(n_rows) < 1 / (1 + np.exp(-score)), "fraud", "genuine")
    columns = {
        "amount": amount,
        "hour": hour,
        "merchant": merchant,
        "card present": present,
        "declines last day": declines,
        "card age in days": card_days,
        "days since last payment": gap_days,
        "postcode digit": postcode,
    }
    return Schema.learn(columns).table, label


def payments_text(payments: Table, label: NDArray[np.str_]) -> str:
    """The table as a CSV file, its classes in a last column ``label``."""
    columns = [
        [f"{cell:.10g}" if cell == cell else "" for cell in payments.column(j)]
        if texts is None
        else [texts[code] for code in payments.column(j)]
        for j, texts in enumerate(payments.categories)
    ]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*payments.names, "label"])
    writer.writerows(zip(*columns, label.tolist(), strict=True))
    return out.getvalue()
