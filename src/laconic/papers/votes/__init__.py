"""Roy, "Un algorithme d'apprentissage parcimonieux maximisant le désaccord" (13 February 2015).

The tables of the slides come from one half/half split per set: all risks are multiples of
1/floor(N/2). The halves are not stratified: constant votes have the risks .4815 on heart, .5093 on
monks and .3200 on titanic, where a stratified half has .4444, .5 and .3227. Categories are read as
numbers, stumps have ten equally spaced thresholds in both directions. How sets of more than two
classes were made binary is not said; the choice here is in :data:`POSITIVE`.

The learners in the form of the slides are in :mod:`laconic.papers.votes.form`, the cells in
:mod:`laconic.papers.votes_tables`. ``python -m laconic.papers.votes`` prints the sets with the
library's own defaults instead, and their rivals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic._typing import Floats, Ints
from laconic.data.datasets import load

PUBLISHED_STUMPS = {
    # set: (CqBoost risk, columns), (MinCq risk, columns), (CG-Boost), (LPBoost)
    "letterAB": ((0.0039, 160), (0.0051, 320), (0.0026, 160), (0.0129, 51)),
    "australian": ((0.1855, 70), (0.1855, 280), (0.2348, 147), (0.1449, 1)),
    "balance": ((0.0256, 17), (0.0256, 80), (0.0385, 40), (0.0288, 16)),
    "breast": ((0.0458, 83), (0.0458, 180), (0.0372, 90), (0.0430, 24)),
    "car": ((0.1516, 16), (0.1516, 120), (0.2569, 60), (0.1678, 14)),
    "cmc": ((0.2785, 36), (0.2785, 180), (0.3084, 113), (0.3084, 35)),
    "credit": ((0.1391, 84), (0.1391, 300), (0.1768, 161), (0.1333, 1)),
    "cylinder": ((0.3852, 224), (0.3741, 700), (0.3630, 330), (0.3630, 1)),
    "ecoli": ((0.0714, 54), (0.0714, 140), (0.0833, 70), (0.0893, 25)),
    "glass": ((0.2430, 80), (0.2617, 180), (0.2243, 98), (0.3645, 1)),
    "heart": ((0.2593, 65), (0.2593, 260), (0.2296, 130), (0.2741, 38)),
    "hepatitis": ((0.2468, 78), (0.2078, 380), (0.2078, 190), (0.1818, 1)),
    "horse": ((0.3696, 152), (0.3533, 520), (0.3696, 256), (0.2065, 1)),
    "ionosphere": ((0.1943, 179), (0.1029, 680), (0.1543, 330), (0.1086, 63)),
    "monks1": ((0.2361, 12), (0.2361, 120), (0.2315, 114), (0.2315, 21)),
    "pima": ((0.2578, 74), (0.2656, 160), (0.3594, 80), (0.2474, 40)),
    "tictactoe": ((0.3215, 20), (0.3215, 180), (0.3779, 90), (0.3549, 1)),
    "titanic": ((0.2282, 6), (0.2282, 60), (0.2309, 18), (0.2309, 1)),
    "wine": ((0.1685, 95), (0.0449, 260), (0.0562, 130), (0.0899, 1)),
    "yeast": ((0.3032, 67), (0.2965, 160), (0.2992, 81), (0.3747, 1)),
    "zoo": ((0.0200, 20), (0.0200, 320), (0.1000, 152), (0.0400, 10)),
}

PUBLISHED_RBF = {
    "letterAB": ((0.0103, 20), (0.0180, 778), (0.0116, 359), (0.0142, 26)),
    "australian": ((0.1449, 14), (0.1333, 345), (0.1333, 295), (0.1449, 33)),
    "balance": ((0.0737, 10), (0.0577, 313), (0.0288, 98), (0.4455, 1)),
    "breast": ((0.0458, 38), (0.0372, 350), (0.0430, 141), (0.0430, 9)),
    "car": ((0.0718, 34), (0.2836, 864), (0.0729, 567), (0.0243, 90)),
    "cmc": ((0.3043, 9), (0.2908, 737), (0.2948, 447), (0.3003, 98)),
    "credit": ((0.1275, 72), (0.1391, 345), (0.1333, 263), (0.1333, 62)),
    "cylinder": ((0.3037, 59), (0.3148, 270), (0.2741, 194), (0.2741, 116)),
    "ecoli": ((0.0714, 40), (0.0893, 168), (0.1012, 139), (0.5060, 1)),
    "glass": ((0.1963, 21), (0.2617, 107), (0.2804, 82), (0.2150, 44)),
    "heart": ((0.1630, 3), (0.1481, 135), (0.4815, 114), (0.4815, 1)),
    "hepatitis": ((0.2078, 39), (0.1948, 78), (0.2078, 66), (0.1948, 12)),
    "horse": ((0.1848, 15), (0.1793, 184), (0.2011, 151), (0.3641, 8)),
    "ionosphere": ((0.1486, 14), (0.1257, 176), (0.1200, 142), (0.1429, 41)),
    "monks1": ((0.2037, 43), (0.3426, 216), (0.2546, 163), (0.5093, 1)),
    "pima": ((0.2474, 5), (0.2630, 384), (0.2552, 202), (0.2578, 69)),
    "tictactoe": ((0.2129, 19), (0.3403, 479), (0.3883, 340), (0.0480, 170)),
    "titanic": ((0.2164, 15), (0.2309, 1101), (0.2309, 769), (0.3200, 1)),
    "wine": ((0.0337, 9), (0.0225, 89), (0.4157, 85), (0.0449, 20)),
    "yeast": ((0.2736, 23), (0.3369, 742), (0.2749, 422), (0.2709, 66)),
    "zoo": ((0.0400, 18), (0.0400, 51), (0.1000, 46), (0.1000, 12)),
}

POSITIVE: dict[str, tuple[Any, ...]] = {
    "letterAB": ("A",),
    "balance": ("L",),
    "car": ("unacc",),
    "cmc": (1,),
    "ecoli": ("cp",),
    "glass": (1, 3),
    "wine": (2,),
    "yeast": ("CYT",),
    "zoo": ("mammal",),
}
"""Classes taken as positive; the last class for the sets that are not listed. On wine a constant
vote errs on 37 of 89 rows (CG-Boost on kernels): halves have 35.5 +- 3.3 rows of class 2, 29.5 +-
3.1 of class 1."""


def read(name: str, positive: tuple[Any, ...] | None = None) -> tuple[Floats, NDArray[np.int64]]:
    """A set of the slides with categories as numbers and two classes."""
    data = load(name)
    columns = []
    for column in data.columns:
        cells = np.asarray(data.X[column])
        if column in data.categorical:
            texts = np.array(["" if c is None or c != c else str(c) for c in cells])
            values = np.unique(texts, return_inverse=True)[1].astype(np.float64)
            values[texts == ""] = np.nan
        else:
            values = cells.astype(np.float64)
        columns.append(values)
    positive = positive or POSITIVE.get(name, tuple(np.unique(data.y)[-1:]))
    return np.column_stack(columns), np.isin(data.y, positive).astype(np.int64)


def slides_half(y: NDArray[np.int64], seed: int) -> tuple[Ints, Ints]:
    """A random half for training, with the odd row, and the other half."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(y)), test_size=len(y) // 2, random_state=seed)
    return train, test


def halves(y: NDArray[np.int64], splits: int, first: int = 0) -> Iterator[tuple[Any, Any]]:
    """Stratified half/half splits, of seeds ``first`` and up; an odd row is for the test."""
    from sklearn.model_selection import train_test_split

    for seed in range(first, first + splits):
        yield train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)


def filled(X: Floats, train: Any) -> Floats:
    """Missing numbers replaced by the training median, for methods that do not take them."""
    middle = np.nanmedian(X[train], axis=0)
    return np.where(np.isnan(X), np.nan_to_num(middle), X)
