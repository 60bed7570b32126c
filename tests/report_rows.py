"""Rows for the tests of the report: names that try to be markup."""

from __future__ import annotations

import numpy as np

EVIL = "<script>alert(1)</script>\"'</title>&"


def hostile_model():
    """Column and class names that try to be markup, to be read backwards, or to be endless."""
    names = [
        EVIL,
        "' onload='alert(1)",
        "\u202edesrever\u202c",
        "x" * 10_000,
        "__proto__",
        "a{b}$&",
    ]
    draw = np.random.default_rng(0)
    X = {name: draw.normal(size=400) for name in names}
    X["text"] = draw.choice([EVIL, "\u202eevil", "plain"], 400)
    score = sum(X[name] for name in names)
    classes = np.array([EVIL, "\u202eyes\u2028</script>" + "y" * 10_000], dtype=object)
    return X, classes[(score + draw.logistic(size=400) > 1).astype(int)]
