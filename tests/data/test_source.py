from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from laconic.data.source import BLOCK_ROWS, RUN_BLOCKS, ArraySource, Recoded, Recoding
from laconic.data.tables.columns import Schema


def test_sum_visits_every_row_once_in_order():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    source = ArraySource(X, y=np.arange(1000), block_rows=64)
    starts = list(source.map(lambda block: (block.index, block.start, len(block))))
    assert starts[0] == (0, 0, 64)
    assert starts[-1] == (15, 960, 40)
    np.testing.assert_array_equal(source.sum(lambda block: block.y.sum()), 499_500)
    np.testing.assert_allclose(source.sum(lambda block: block.X.T @ block.X), X.T @ X)


def test_sum_adds_runs_of_blocks_in_order_to_the_last_bit():
    X = np.random.default_rng(1).normal(size=(500, 2)) * 10.0 ** np.arange(500)[:, None].clip(0, 30)
    source = ArraySource(X, block_rows=37)
    parts = [X[start : start + 37].sum(0) for start in range(0, 500, 37)]
    first, second = parts[0], parts[RUN_BLOCKS]
    for part in parts[1:RUN_BLOCKS]:
        first = first + part
    for part in parts[RUN_BLOCKS + 1 :]:
        second = second + part
    assert source.sum(lambda block: block.X.sum(0)).tobytes() == (first + second).tobytes()


def test_recoded_rows_are_made_once_and_stay_with_their_block():
    made = []

    def recode(block):
        made.append(block.index)
        return block.X * 2.0

    rows = ArraySource(np.ones((10, 3)), y=np.arange(10), block_rows=4)
    source = Recoded(rows, Recoding("twice", recode))
    for _ in range(2):
        assert source.sum(lambda block: block.X.sum() + block.y.sum()) == 60.0 + 45.0
        assert source.sum(lambda block: block.X.shape[1], [0, 2]) == 6
    assert made == [0, 1, 2]


def test_tuples_are_summed_item_by_item():
    source = ArraySource(np.ones((10, 2)), weight=np.full(10, 2.0), block_rows=3)
    count, total = source.sum(lambda b: (len(b), b.weight @ b.X))
    assert count == 10
    np.testing.assert_array_equal(total, [20.0, 20.0])


def test_blocks_of_a_sparse_matrix_are_cut_once():
    draw = np.random.default_rng(0)
    X = sparse.csr_matrix(draw.normal(size=(50, 4)) * (draw.random((50, 4)) < 0.3))
    source = ArraySource(X, block_rows=7)
    first, second = list(source.blocks()), list(source.blocks())
    assert all(one.X is other.X for one, other in zip(first, second, strict=True))
    np.testing.assert_array_equal(np.vstack([b.X.toarray() for b in first]), X.toarray())
    assert next(iter(source.blocks([0, 2]))).X.shape == (7, 2)


def test_blocks_of_a_table_and_of_a_sparse_matrix():
    frame = pd.DataFrame({"a": np.arange(10.0), "b": list("xyxyxyxyxy")})
    table = Schema.learn(frame).table
    source = ArraySource(table, block_rows=4)
    assert source.sum(lambda block: block.X.column(0).sum()) == 45
    assert source.sum(lambda block: np.bincount(block.X.column(0)), columns=[1]).tolist() == [5, 5]
    csr = sparse.random_array((30, 4), density=0.3, format="csr", random_state=0)
    dense = ArraySource(csr, block_rows=7).sum(lambda block: block.X.sum(axis=0))
    np.testing.assert_allclose(dense, csr.sum(axis=0))


def test_a_view_not_a_copy():
    X = np.zeros((BLOCK_ROWS + 1, 1))
    assert all(ArraySource(X).map(lambda block: np.shares_memory(block.X, X)))


def test_no_rows():
    with pytest.raises(ValueError, match="no rows"):
        ArraySource(np.empty((0, 2))).sum(lambda block: block.X.sum(0))
