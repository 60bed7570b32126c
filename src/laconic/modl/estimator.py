"""Supervised discretisation and value grouping without parameters, as a transformer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from laconic._typing import Floats
from laconic.core.contract import Accepts, Interval, LabelledReader, StrOptions, fit_context
from laconic.data.source import Block
from laconic.data.tables.columns import Schema
from laconic.data.value_tables import labels
from laconic.modl.fit import (
    Request,
    Setting,
    class_counts,
    fit_column,
    read_requests,
    recounted,
)
from laconic.modl.partition import Partition, code_matrix

__all__ = ["ModlEncoder", "Partition"]


class ModlEncoder(TransformerMixin, LabelledReader):  # type: ignore[misc]
    """Discretise numeric columns and group categorical values where it shortens the description.

    Each column is cut in the parts that minimise a code length of the classes given the column
    (MODL, Boulle 2006): no number of bins to choose, one part for a column that says nothing of
    the class. Missing numbers are a value below all others; a missing category is a category.

    Sample weights are counts: a row of weight 3 is three rows, so that weights that sum to less
    than the number of rows mean less evidence and fewer parts.

    Parameters
    ----------
    code : {"granular", "2006"}, default="granular"
        How a partition is written down, that is, its prior: "granular" charges little for coarse
        cuts; "2006" is that of Boulle (2006) for intervals and Boulle (2005) for groups.
    max_parts : int, default=None
        Largest number of parts of a column.
    min_part_weight : float, default=None
        Least weight of a part; below 1, a share of the total weight.
    monotone : dict or {"increasing", "decreasing"}, default=None
        Column -> direction in which the rate of the second class must go (two classes, numeric
        columns). Missing values are then a part of their own.
    cuts : dict, default=None
        Column -> cut points to use instead of a search; a value equal to a cut falls below it.
    special_values : list or dict, default=None
        Numbers that are codes, not amounts (for all numeric columns, or per column): each that
        occurs is a part of its own.
    pairs : int, default=0
        Largest number of two-column grids to add as variables.
    trees : int, default=0
        Number of small trees whose leaves are added as variables.
    output : {"codes", "labels", "onehot", "sparse", "logprob"}, default="codes"
        Part numbers; readable texts; one 0/1 column per part (dense or CSR); or
        ln P(part | class), one column per class.
    drop_uninformative : bool, default=False
        Leave out variables with one part or a level of 0.
    n_jobs : int, default=None
        Threads over columns. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Used by ``trees`` and by the screening of ``pairs`` on large tables.

    Attributes
    ----------
    partitions_ : dict of str to Partition
        One per column, then pairs, then trees.
    exact_ : dict of str to bool
        Which partitions are proven optimal.
    classes_ : ndarray of shape (n_classes,)
    class_weights_ : ndarray of shape (n_classes,)
        Training weight of each class.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        When X has named columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> encoder = ModlEncoder().fit(X, y)
    >>> width = encoder.partitions_["petal width (cm)"]
    >>> width.bounds
    array([0.8 , 1.75])
    >>> round(width.level, 3)
    0.685
    >>> encoder.transform(X.iloc[:2])
    array([[0, 2, 0, 0],
           [0, 1, 0, 0]], dtype=int32)
    """

    _accepts = Accepts(scan=True)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "code": [StrOptions({"granular", "2006"})],
        "max_parts": [Interval(Integral, 1, None, closed="left"), None],
        "min_part_weight": [Interval(Real, 0, None, closed="left"), None],
        "monotone": [dict, StrOptions({"increasing", "decreasing"}), None],
        "cuts": [dict, None],
        "special_values": ["array-like", dict, None],
        "pairs": [Interval(Integral, 0, None, closed="left")],
        "trees": [Interval(Integral, 0, None, closed="left")],
        "output": [StrOptions({"codes", "labels", "onehot", "sparse", "logprob"})],
        "drop_uninformative": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        code: str = "granular",
        max_parts: int | None = None,
        *,
        min_part_weight: float | None = None,
        monotone: Any = None,
        cuts: dict[Any, Any] | None = None,
        special_values: Any = None,
        pairs: int = 0,
        trees: int = 0,
        output: str = "codes",
        drop_uninformative: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.code = code
        self.max_parts = max_parts
        self.min_part_weight = min_part_weight
        self.monotone = monotone
        self.cuts = cuts
        self.special_values = special_values
        self.pairs = pairs
        self.trees = trees
        self.output = output
        self.drop_uninformative = drop_uninformative
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the partition of every column."""
        training = self._read_training(X, y, sample_weight)
        return self.fit_rows(training, self.schema_, self.classes_)

    @fit_context(prefer_skip_nested_validation=True)
    def fit_rows(self, training: Any, schema: Schema, classes: NDArray[Any]) -> Self:
        """Find the partitions on rows that an estimator around this one has read."""
        self.schema_, self.classes_ = schema, classes
        self._publish_names()
        if self.pairs or self.trees:
            self._refuse_scan(training.in_memory, "(pairs=..., trees=...)")
        totals = training.source.sum(partial(_class_totals, n_classes=len(classes)), [])
        setting = Setting(training.source, training.table, classes, totals, self.code)  # type: ignore[arg-type]
        requests = self._requests(setting)
        if not training.in_memory:
            setting = setting.read_together()
        found: list[Partition] = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(fit_column)(setting, j, request) for j, request in enumerate(requests)
        )
        found = recounted(setting, found)
        self.class_weights_ = totals
        self.partitions_ = {partition.name: partition for partition in found}
        self._add_constructed(setting, found)
        self.exact_ = {name: p.exact for name, p in self.partitions_.items()}
        return self

    def _requests(self, setting: Setting) -> list[Request]:
        """What the parameters ask of each column."""
        return read_requests(
            setting,
            max_parts=self.max_parts,
            min_part_weight=self.min_part_weight,
            monotone=self.monotone,
            cuts=self.cuts,
            special_values=self.special_values,
        )

    def _add_constructed(self, setting: Setting, found: list[Partition]) -> None:
        if not (self.pairs or self.trees):
            return
        from laconic.modl.atoms import read_atoms
        from laconic.modl.pairs import fit_pairs
        from laconic.modl.trees import fit_trees

        atoms = read_atoms(setting)
        made: list[Partition] = []
        if self.pairs:
            made += fit_pairs(setting, atoms, found, int(self.pairs), self.random_state)
        if self.trees:
            made += fit_trees(setting, atoms, int(self.trees), self.random_state)
        for partition in made:
            self.partitions_[partition.name] = partition

    @property
    def levels_(self) -> dict[str, float]:
        """Level of every variable, highest first."""
        check_is_fitted(self, "partitions_")
        levels = {name: p.level for name, p in self.partitions_.items()}
        return dict(sorted(levels.items(), key=lambda item: -item[1]))

    def _kept(self) -> list[Partition]:
        check_is_fitted(self, "partitions_")
        every = list(self.partitions_.values())
        return [p for p in every if p.informative] if self.drop_uninformative else every

    def transform(self, X: Any) -> Any:
        """Encode rows as ``output`` says.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray (CSR matrix for ``output="sparse"``) of shape (n_samples, n_outputs)
        """
        kept, table = self._kept(), self._read_rows(X)
        codes = code_matrix(table, kept, np.int32)
        if self.output == "codes":
            return codes
        if self.output == "labels":
            out = np.empty(codes.shape, dtype=object)
            for k, partition in enumerate(kept):
                out[:, k] = np.array(partition.labels, dtype=object)[codes[:, k]]
            return out
        if self.output == "logprob":
            n_classes = len(self.classes_)
            values = np.empty((len(codes), len(kept) * n_classes))
            for k, partition in enumerate(kept):
                columns = slice(k * n_classes, (k + 1) * n_classes)
                values[:, columns] = partition.conditional_log_probabilities()[codes[:, k]]
            return values
        return indicators(codes, kept, dense=self.output == "onehot")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` makes."""
        kept = self._kept()
        self._check_input_names(input_features)
        if self.output in ("codes", "labels"):
            names = [p.name for p in kept]
        elif self.output == "logprob":
            names = [f"{p.name}|{label}" for p in kept for label in self.classes_]
        else:
            names = [f"{p.name}={label}" for p in kept for label in _unlike(p.labels)]
        return np.array(names, dtype=object)

    def _check_input_names(self, input_features: Any) -> None:
        if input_features is None:
            return
        names = np.asarray(input_features, dtype=object)
        if len(names) != self.n_features_in_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        if hasattr(self, "feature_names_in_") and not np.array_equal(names, self.feature_names_in_):
            raise ValueError("input_features is not equal to feature_names_in_")


def _class_totals(block: Block, n_classes: int) -> Floats:
    return np.asarray(class_counts(np.zeros(len(block)), *labels(block), 1, n_classes)[0])


def indicators(codes: NDArray[Any], partitions: Sequence[Partition], *, dense: bool) -> Any:
    """One 0/1 column by part, from the part of every row: an array, or a CSR matrix."""
    start = np.concatenate([[0], np.cumsum([p.n_parts for p in partitions])]).astype(np.int64)
    places = (codes + start[:-1]).ravel()
    rows = np.arange(len(codes) + 1, dtype=np.int64) * len(partitions)
    shape = (len(codes), int(start[-1]))
    ones = sparse.csr_matrix((np.ones(places.size), places, rows), shape=shape)
    return ones.toarray() if dense else ones


def _unlike(labels: list[str]) -> list[str]:
    """Labels, numbered where two of them read the same."""
    if len(set(labels)) == len(labels):
        return labels
    return [f"{label} #{k}" for k, label in enumerate(labels)]


def make_encoder(owner: Any) -> ModlEncoder:
    """The encoder inside an estimator: a copy of its ``encoder``, or one with its threads and seed.

    The estimator's own ``pairs`` and ``trees``, where it has any, go before those of the encoder.
    """
    given = owner.encoder
    if given is None:
        made = ModlEncoder(n_jobs=owner.n_jobs, random_state=owner.random_state)
    elif isinstance(given, ModlEncoder):
        made = clone(given)
    else:
        raise TypeError(
            f"encoder must be a ModlEncoder or None, got {type(given).__name__}; set its "
            "parameters, not its class."
        )
    for name in ("pairs", "trees"):
        if getattr(owner, name, 0):
            made.set_params(**{name: getattr(owner, name)})
    return made
