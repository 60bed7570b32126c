"""Rows in files for the tests of scans."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl


def payments(n_rows: int = 6_000, seed: int = 0) -> pl.DataFrame:
    """Numbers, whole numbers, texts, missing cells, a weight with zeros, and a label."""
    draw = np.random.default_rng(seed)
    amount = np.round(draw.normal(size=n_rows), 2)
    kind = draw.choice(["card", "cash", "wire"], n_rows)
    score = 2.0 * amount + (kind == "wire") - 1.0
    return pl.DataFrame(
        {
            "amount": amount,
            "noise": draw.normal(size=n_rows),
            "count": draw.integers(0, 5, n_rows),
            "kind": pl.Series(np.where(draw.random(n_rows) < 0.05, None, kind), dtype=pl.String),
            "gap": np.where(draw.random(n_rows) < 0.1, np.nan, np.round(draw.gamma(2, 3, n_rows))),
            "w": draw.integers(0, 3, n_rows).astype(float),
            "label": np.where(draw.random(n_rows) < 1 / (1 + np.exp(-score)), "yes", "no"),
        }
    )


NUMBERS = ["amount", "noise", "count"]
COSTS = {"no": {"yes": 1.0}, "yes": {"no": 5.0}}


def in_files(frame: pl.DataFrame, folder: Path, cuts: tuple[int, ...] = (1_700, 4_100)) -> Path:
    """Three files with row groups that fit no block."""
    ends = [0, *cuts, frame.height]
    for k, (start, stop) in enumerate(pairwise(ends)):
        path = folder / f"part-{k}.parquet"
        frame[start:stop].write_parquet(path, row_group_size=700 + 111 * k)
    return folder
