"""One row, and rows as people have them at hand: what is no table is refused in one sentence."""

import numpy as np
import pytest

import laconic


@pytest.fixture(scope="module")
def model():
    draw = np.random.default_rng(0)
    X = {"id": [f"k{k}" for k in range(200)], "a": draw.random(200), "b": ["u", "v"] * 100}
    with pytest.warns(UserWarning, match="left out"):
        return laconic.LaconicClassifier(candidates=["logistic"]).fit(X, draw.random(200) < X["a"])


def test_a_dict_of_one_row_and_a_list_of_dicts_are_refused_with_what_to_write(model):
    row = {"id": "k1", "a": 0.5, "b": "u"}
    with pytest.raises(TypeError, match="Column 'id' of X is one cell, 'k1'; a dict holds a list"):
        model.predict(row)
    assert len(model.predict({name: [cell] for name, cell in row.items()})) == 1
    with pytest.raises(TypeError, match="a list of rows with names; give columns"):
        model.predict([row, row])


def test_an_array_for_a_table_with_a_column_left_out_names_the_remedy(model):
    with pytest.raises(ValueError, match="expecting 2 features as input; its columns have names"):
        model.predict(np.zeros((3, 3)))


def test_postcodes_whose_last_digits_were_hidden_are_no_numbers():
    found = laconic.look(
        {"zip": [f"{k:03d}xx" for k in range(100)] * 3, "dose": [f"{k} mg" for k in range(300)]}
    )
    said = {column.name: column.kind for column in found.reading.columns}
    assert said == {"zip": "category", "dose": "number"}
