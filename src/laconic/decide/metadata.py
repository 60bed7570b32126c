"""What a model around another one hands to the other's ``fit``: weights and other metadata."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from laconic.core.contract import take_rows


def passed_to_fit(owner: Any, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
    """What ``owner.estimator.fit`` receives, with and without metadata routing."""
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(owner, "fit", sample_weight=sample_weight, **fit_params)
        return dict(routed.estimator.fit)
    if sample_weight is None or isinstance(owner.estimator, FrozenEstimator):
        return fit_params
    if not has_fit_parameter(owner.estimator, "sample_weight"):
        raise ValueError(
            f"{type(owner.estimator).__name__}.fit takes no sample_weight. For a pipeline, call "
            "sklearn.set_config(enable_metadata_routing=True) and set_fit_request on its last "
            "step; else leave the weights out."
        )
    return {**fit_params, "sample_weight": sample_weight}


def rows_of_metadata(
    passed: dict[str, Any], kept: NDArray[np.int64], n_rows: int
) -> dict[str, Any]:
    """The kept rows of what holds one entry per row; anything else as it is.

    >>> rows_of_metadata({"sample_weight": [1.0, 2.0], "verbose": True}, np.array([1]), 2)
    {'sample_weight': [2.0], 'verbose': True}
    """

    def cut(value: Any) -> Any:
        per_row = hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n_rows
        return take_rows(value, kept) if per_row else value

    return {name: cut(value) for name, value in passed.items()}
