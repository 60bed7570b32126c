"""The data door: any frame or array in, named columns of two kinds out.

Numeric and boolean columns become ``float64`` with NaN for missing. Text and categorical columns
become ``int32`` codes into the sorted texts seen at fit, with :data:`MISSING` and :data:`UNSEEN`
for the cells that have no text or a new one. Decided behaviours: infinities, dates, complex
numbers and duplicated names are errors that name the column; a column without any value is
numeric and all missing, and agrees with every kind; columns that were not there at fit are
ignored when columns have names.
"""

from __future__ import annotations

import numbers
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

Kind = Literal["numeric", "boolean", "categorical"]

MISSING = -1
UNSEEN = -2

_SHOWN = 60
_FEW_ROWS = 256
"""Below this a dict is faster than the frame library's own look-up."""


def shown(name: object) -> str:
    """A column name as error messages show it: quoted, one line, not endless."""
    text = str(name)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def forbidden_pairs(
    forbid: Sequence[Sequence[str]] | None, names: Sequence[str]
) -> frozenset[tuple[int, int]]:
    """Places of the columns of each pair, the smaller one first.

    >>> forbidden_pairs([("sex", "age")], ["age", "income", "sex"])
    frozenset({(0, 2)})
    """
    found = set()
    for pair in forbid or ():
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"forbid must hold pairs of two columns, got {pair!r}.")
        odd = [name for name in pair if name not in names]
        if odd:
            raise ValueError(f"forbid names {shown(odd[0])}, which is not a column of X.")
        first, last = sorted(names.index(name) for name in pair)
        found.add((first, last))
    return frozenset(found)


@dataclass(frozen=True)
class Column:
    """One column as it came: floats, or texts with None for missing."""

    kind: Kind
    values: NDArray[Any]
    categories: tuple[str, ...] | None = None

    @property
    def empty(self) -> bool:
        """True when no cell has a value: such a column agrees with every kind."""
        if self.kind == "categorical":
            return not bool((self.values != MISSING).any())
        return bool(np.isnan(self.values).all())


def infinite_message(name: object) -> str:
    return (
        f"Column {shown(name)} has infinite values (inf); replace them by missing or by a finite "
        "bound."
    )


def as_column(raw: Any, name: str, categories: tuple[str, ...] | None = None) -> Column:
    """One raw column (narwhals series, array or list) with its kind; codes where categorical."""
    if isinstance(raw, Column):
        if raw.kind != "categorical":
            return raw
        return _recode(raw.values, list(raw.categories or ()), categories)
    if isinstance(raw, nw.Series):
        dtype = raw.dtype
        if dtype == nw.Object:
            return _from_objects(raw.to_list(), name, categories)
        return _from_series(raw, dtype, name, categories)
    array = np.asarray(raw)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {shown(name)}.")
    if array.dtype.kind in "biuf":
        return _numeric(array, name, boolean=array.dtype == bool)
    return _from_objects(array.tolist() if array.dtype.kind in "US" else array, name, categories)


def _numeric(values: NDArray[Any], name: str, *, boolean: bool) -> Column:
    values = np.asarray(values, dtype=np.float64)
    if np.isinf(values).any():
        raise ValueError(infinite_message(name))
    return Column("boolean" if boolean else "numeric", values)


def _from_series(
    series: nw.Series[Any], dtype: Any, name: str, categories: tuple[str, ...] | None
) -> Column:
    if dtype == nw.Float64:
        return _numeric(series.to_numpy(), name, boolean=False)
    if dtype == nw.Boolean or dtype.is_numeric():
        values = series.cast(nw.Float64).to_numpy()
        return _numeric(values, name, boolean=dtype == nw.Boolean)
    if dtype in (nw.Categorical, nw.Enum):
        # pandas: texts of the categories, not of the cells, whose numbers change type with NaN
        accessor = getattr(series.to_native(), "cat", None)
        codes = getattr(accessor, "codes", None)
        if accessor is not None and codes is not None:
            texts = [str(text) for text in accessor.categories]
            return _recode(np.asarray(codes), texts, categories)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        text = series if dtype == nw.String else series.cast(nw.String)
        if len(text) <= _FEW_ROWS:
            return _from_objects(text.to_list(), name, categories)
        return _from_texts(text, categories)
    if dtype == nw.Unknown or str(dtype).lower() == "null":
        return _from_objects(series.to_list(), name, categories)
    raise ValueError(
        f"Column {shown(name)} holds {dtype}, which is neither a number nor a category; turn it "
        "into numbers (for a date, days since a fixed day) or text."
    )


def _from_texts(text: nw.Series[Any], categories: tuple[str, ...] | None) -> Column:
    """Codes of a long text column, looked up by the frame library."""
    known = categories
    if known is None:
        known = tuple(sorted(text.drop_nulls().unique().to_list()))
    missing = text.is_null().to_numpy()
    if missing.all() and categories is None:
        return Column("numeric", np.full(len(missing), np.nan))
    codes = np.full(len(missing), UNSEEN, dtype=np.int32)
    if known:
        found = text.fill_null(known[0]).replace_strict(
            list(known), list(range(len(known))), default=UNSEEN, return_dtype=nw.Int32
        )
        codes = np.array(found.to_numpy(), dtype=np.int32)
    codes[missing] = MISSING
    return Column("categorical", codes, known)


def _recode(codes: NDArray[Any], texts: list[str], categories: tuple[str, ...] | None) -> Column:
    """Codes into ``texts`` become codes into ``categories`` (or into the texts present)."""
    if categories is None:
        present = np.unique(codes[codes >= 0])
        if not len(present):
            return Column("numeric", np.full(len(codes), np.nan))
        categories = tuple(sorted({texts[k] for k in present}))
    place = {text: k for k, text in enumerate(categories)}
    # the two negative codes index the end of the lookup
    lookup = np.array(
        [place.get(text, UNSEEN) for text in texts] + [UNSEEN, MISSING], dtype=np.int32
    )
    return Column("categorical", lookup[codes], categories)


def _from_objects(cells: Any, name: str, categories: tuple[str, ...] | None) -> Column:
    """Python objects: all numbers, all truth values, or texts compared by ``str``."""
    absent = [is_missing(cell) for cell in cells]
    filled = [cell for cell, gone in zip(cells, absent, strict=True) if not gone]
    if any(isinstance(cell, complex | np.complexfloating) for cell in filled):
        raise ValueError(f"Complex data not supported: column {shown(name)}.")
    if all(isinstance(cell, numbers.Number | np.bool_) for cell in filled):
        boolean = bool(filled) and all(isinstance(cell, bool | np.bool_) for cell in filled)
        values = np.full(len(absent), np.nan)
        values[~np.array(absent, dtype=bool)] = [float(cell) for cell in filled]
        return _numeric(values, name, boolean=boolean)
    texts = [str(cell) for cell in filled]
    if categories is None:
        categories = tuple(sorted(set(texts)))
    place = {text: k for k, text in enumerate(categories)}
    codes = np.full(len(absent), MISSING, dtype=np.int32)
    codes[~np.array(absent, dtype=bool)] = [place.get(text, UNSEEN) for text in texts]
    return Column("categorical", codes, categories)


def is_missing(cell: object) -> bool:
    """None, NaN, and pandas.NA and pandas.NaT, recognised without importing pandas."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return True
    return type(cell).__name__ in ("NAType", "NaTType")


class Table:
    """Validated columns of equal length; rows slice as views.

    >>> table = Schema.learn({"age": [31.0, None], "job": ["cook", "smith"]}).table
    >>> table.kinds
    ('numeric', 'categorical')
    >>> table.column(1), table.categories[1]
    (array([0, 1], dtype=int32), ('cook', 'smith'))
    """

    def __init__(
        self,
        names: tuple[str, ...],
        kinds: tuple[Kind, ...],
        categories: tuple[tuple[str, ...] | None, ...],
        columns: Sequence[NDArray[Any]] | None = None,
        matrix: Any = None,
    ) -> None:
        self.names = names
        self.kinds = kinds
        self.categories = categories
        self._columns = None if columns is None else tuple(columns)
        self._matrix = matrix

    @property
    def n_rows(self) -> int:
        if self._matrix is not None:
            return int(self._matrix.shape[0])
        return len(self._columns[0]) if self._columns else 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.names)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self._matrix))

    @property
    def in_one_matrix(self) -> bool:
        """Whether :meth:`matrix` is there already."""
        return self._matrix is not None

    @property
    def all_numeric(self) -> bool:
        return "categorical" not in self.kinds

    def place(self, name: str) -> int:
        """Where a column is, by its name."""
        try:
            return self.names.index(name)
        except ValueError:
            raise ValueError(f"The table has no column {name!r}, which the model reads.") from None

    def column(self, j: int) -> NDArray[Any]:
        """Column j: float64 (NaN = missing) or int32 codes; a view where possible."""
        if self._matrix is None:
            assert self._columns is not None
            return self._columns[j]
        if self.is_sparse:
            values: NDArray[Any] = self._matrix[:, [j]].toarray().ravel()
            return values
        return np.asarray(self._matrix[:, j], dtype=np.float64)

    def matrix(self) -> Any:
        """The float64 array (CSR when the input was sparse); no copy when the input was one."""
        if self._matrix is not None:
            if self.is_sparse:
                return self._matrix
            return np.asarray(self._matrix, dtype=np.float64)
        if not self.all_numeric:
            raise ValueError("A table with categorical columns has no matrix.")
        assert self._columns is not None
        out = np.empty(self.shape)
        for j, values in enumerate(self._columns):
            out[:, j] = values
        return out

    def raw_columns(self) -> list[Any]:
        """The columns with their kinds, for reading this table as any other input."""
        return [
            Column(kind, self.column(j), categories)
            for j, (kind, categories) in enumerate(zip(self.kinds, self.categories, strict=True))
        ]

    def __getitem__(self, key: Any) -> Table:
        """``table[rows]`` or ``table[:, columns]``; rows: slice, mask or index array."""
        rows, columns = key if isinstance(key, tuple) else (key, None)
        columns = None if columns is Ellipsis else columns
        picked = range(len(self.names)) if columns is None else columns
        names = tuple(self.names[j] for j in picked)
        kinds = tuple(self.kinds[j] for j in picked)
        categories = tuple(self.categories[j] for j in picked)
        if self._matrix is not None:
            matrix = self._matrix[rows]
            if columns is not None:
                matrix = matrix[:, list(picked)]
            return Table(names, kinds, categories, matrix=matrix)
        assert self._columns is not None
        return Table(names, kinds, categories, [self._columns[j][rows] for j in picked])


class TableReading(Protocol):
    """What turns a table as it comes into numbers and categories (:mod:`laconic.data.reading`)."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that are read."""
        ...

    @property
    def made(self) -> tuple[str, ...]:
        """The columns that come out."""
        ...

    @property
    def switches(self) -> frozenset[str]:
        """Those that say with 1 or 0 whether a text has a word."""
        ...

    def only(self, made: Sequence[str]) -> TableReading:
        """What is needed for some of the columns that come out."""
        ...

    def apply(self, X: Any) -> Table: ...


@dataclass(frozen=True)
class Learned:
    """What :meth:`Schema.learn` returns."""

    schema: Schema
    table: Table


@dataclass(frozen=True)
class Schema:
    """Names, kinds and category texts learned at fit, applied at predict time.

    ``named`` says whether the names came with the data; if not, they are x0, x1, ... With a
    ``reading``, tables that are not read yet go through it first: dates, amounts and the like.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    categories: tuple[tuple[str, ...] | None, ...]
    named: bool
    reading: TableReading | None = None

    @staticmethod
    def learn(X: Any, *, who: str = "This estimator", allow_sparse: bool = False) -> Learned:
        """Read a training table and remember its columns."""
        names, matrix, columns = _read(X, who, allow_sparse=allow_sparse)
        named = names is not None
        if matrix is not None:
            width = matrix.shape[1]
            kind: Kind = "boolean" if matrix.dtype == bool else "numeric"
            schema = Schema(names or default_names(width), (kind,) * width, (None,) * width, named)
            _refuse_infinite(matrix, schema.names)
            return Learned(
                schema, Table(schema.names, schema.kinds, schema.categories, matrix=matrix)
            )
        assert columns is not None
        all_names = names or default_names(len(columns))
        read = [as_column(raw, name) for raw, name in zip(columns, all_names, strict=True)]
        schema = Schema(
            all_names, tuple(c.kind for c in read), tuple(c.categories for c in read), named
        )
        table = Table(schema.names, schema.kinds, schema.categories, [c.values for c in read])
        return Learned(schema, table)

    def apply(self, X: Any, *, who: str = "This estimator", allow_sparse: bool = False) -> Table:
        """Read a table of the learned columns; by name when both sides have names."""
        if self.reading is not None and not isinstance(X, Table):
            X = self.reading.apply(X)
        names, matrix, columns = _read(
            X, who, allow_sparse=allow_sparse, wanted=self.names if self.named else None
        )
        self._check_width(names, matrix, columns, who)
        if matrix is not None and self.all_numeric:
            _refuse_infinite(matrix, self.names)
            return Table(self.names, self.kinds, self.categories, matrix=matrix)
        if matrix is not None:
            columns = [matrix[:, j] for j in range(matrix.shape[1])]
        assert columns is not None
        values = [self._encode(j, raw) for j, raw in enumerate(columns)]
        return Table(self.names, self.kinds, self.categories, values)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that a table must have: those of the reading, where there is one."""
        return self.names if self.reading is None else self.reading.inputs

    @property
    def all_numeric(self) -> bool:
        return "categorical" not in self.kinds

    def empty_table(self) -> Table:
        """The columns, without rows."""
        columns: list[NDArray[Any]] = [
            np.empty(0, dtype=np.int32 if kind == "categorical" else np.float64)
            for kind in self.kinds
        ]
        return Table(self.names, self.kinds, self.categories, columns)

    def _check_width(
        self, names: tuple[str, ...] | None, matrix: Any, columns: list[Any] | None, who: str
    ) -> None:
        width = matrix.shape[1] if matrix is not None else len(columns or ())
        if width != len(self.names):
            raise ValueError(
                f"X has {width} features, but {who} is expecting {len(self.names)} features as "
                "input."
            )
        if self.named and names is None:
            warnings.warn(
                f"X does not have valid feature names, but {who} was fitted with feature names",
                UserWarning,
                stacklevel=4,
            )
        elif not self.named and names is not None:
            warnings.warn(
                f"X has feature names, but {who} was fitted without feature names",
                UserWarning,
                stacklevel=4,
            )

    def _encode(self, j: int, raw: Any) -> NDArray[Any]:
        column = as_column(raw, self.names[j], self.categories[j])
        if (column.kind == "categorical") == (self.kinds[j] == "categorical"):
            return column.values
        if column.empty:
            if self.kinds[j] == "categorical":
                return np.full(len(column.values), MISSING, dtype=np.int32)
            return np.full(len(column.values), np.nan)
        raise ValueError(
            f"Column {shown(self.names[j])} was {self.kinds[j]} at fit and is {column.kind} now; "
            "convert it to the kind it had."
        )


def default_names(width: int) -> tuple[str, ...]:
    """Names of the columns of an array: x0, x1, ..."""
    return tuple(f"x{j}" for j in range(width))


def _read(
    X: Any, who: str, *, allow_sparse: bool, wanted: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...] | None, Any, list[Any] | None]:
    """Names (None when there are none) and either a numeric matrix or a list of raw columns."""
    if sparse.issparse(X):
        X = check_array(
            X,
            accept_sparse="csr" if allow_sparse else False,
            dtype=np.float64,
            ensure_all_finite=False,
            estimator=who,
        )
        return None, X, None
    if isinstance(X, Table):
        return _pick(X.names, X.raw_columns(), wanted)
    if isinstance(X, dict):
        _refuse_lone_cells(X)
        return _pick(tuple(X), list(X.values()), wanted)
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], dict):
        raise TypeError(
            "X is a list of rows with names; give columns: pandas.DataFrame(rows), or a dict of "
            "lists."
        )
    _refuse_duplicates(getattr(X, "column_names", getattr(X, "columns", None)))
    cells = _cells_of_pandas_row(X)
    if cells is not None:
        return _pick(tuple(cells), list(cells.values()), wanted)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _read_frame(frame, who, wanted)
    if isinstance(X, list | tuple) and np.asarray(X).dtype.kind in "US":
        X = np.array(X, dtype=object)  # rows of numbers and texts keep their numbers
    array = check_array(X, dtype=None, ensure_all_finite=False, estimator=who)
    if array.dtype.kind in "biuf":
        return None, array, None
    return None, None, [array[:, j] for j in range(array.shape[1])]


def _refuse_lone_cells(X: Mapping[str, Any]) -> None:
    """One row is a table too: lists of one cell."""
    for name, cells in X.items():
        if isinstance(cells, str) or not hasattr(cells, "__len__"):
            raise TypeError(
                f"Column {shown(name)} of X is one cell, {str(cells)[:40]!r}; a dict holds a list "
                "for each column, of one cell where there is one row: "
                "{name: [cell] for name, cell in row.items()}."
            )


def has_names(X: Any) -> bool:
    """Whether the columns of the input have names that are texts."""
    if isinstance(X, Table | dict):
        return True
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return isinstance(names, Iterable) and all(isinstance(name, str) for name in names)


def all_columns(X: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Names and columns of any input as they came; x0, x1, ... where it has no names."""
    names, matrix, columns = _read(X, "The table", allow_sparse=False)
    if columns is None:
        columns = [matrix[:, j] for j in range(matrix.shape[1])]
    return names or default_names(len(columns)), columns


def wanted_columns(X: Any, wanted: tuple[str, ...]) -> list[Any]:
    """The columns of these names as they came; all of them, in order, where X has no names."""
    names, matrix, columns = _read(X, "The table", allow_sparse=False, wanted=wanted)
    if columns is None:
        columns = [matrix[:, j] for j in range(matrix.shape[1])]
    if names is None and len(columns) != len(wanted):
        raise ValueError(
            f"X has {len(columns)} features, but the model is expecting {len(wanted)} features as "
            "input; its columns have names, of which some may have been left out at the fit: give "
            "a frame or a dict with these names."
        )
    return columns


def _cells_of_pandas_row(X: Any) -> dict[str, list[Any]] | None:
    """The cells of a pandas frame of one row by name: a tenth of the time of its columns.

    None where a row might not say the same as its columns: categories that are not texts or are
    missing, dates, nullable numbers, names that are not texts.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame) or len(X) != 1:
        return None
    names = X.columns.tolist()
    if not names or not all(isinstance(name, str) for name in names):
        return None
    cells = X.iloc[0].tolist()
    for dtype, cell in zip(X.dtypes.tolist(), cells, strict=True):
        if isinstance(dtype, pandas.CategoricalDtype):
            plain = isinstance(cell, str)
        else:
            plain = isinstance(dtype, pandas.StringDtype) or (
                isinstance(dtype, np.dtype) and dtype.kind in "biufO"
            )
        if not plain:
            return None
    return {name: [cell] for name, cell in zip(names, cells, strict=True)}


def _read_frame(
    frame: nw.DataFrame[Any], who: str, wanted: tuple[str, ...] | None
) -> tuple[tuple[str, ...] | None, Any, list[Any] | None]:
    if min(frame.shape) == 0:
        # scikit-learn's own sentence for "no rows" and "no columns"
        check_array(np.empty(frame.shape), estimator=who)
    names = list(frame.columns)
    texts = {isinstance(name, str) for name in names}
    if texts == {True, False}:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but X "
            "mixes strings and other types as column names; convert them all to strings."
        )
    series = list(frame.iter_columns())
    if texts == {False}:
        return None, None, list(series)
    return _pick(tuple(names), list(series), wanted)


def _pick(
    names: tuple[str, ...], columns: list[Any], wanted: tuple[str, ...] | None
) -> tuple[tuple[str, ...], None, list[Any]]:
    if wanted is None:
        return names, None, columns
    place = {name: j for j, name in enumerate(names)}
    missing = [name for name in wanted if name not in place]
    if missing:  # a text file may have blanks around its names
        place = {name.strip(): j for j, name in enumerate(names)} | place
        missing = [name for name in wanted if name not in place]
    if missing:
        some = ", ".join(shown(name) for name in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise ValueError(
            f"X has no column {some}{more}, which the model was fitted with; add it (missing "
            "values are allowed where the model accepts them)."
        )
    return wanted, None, [columns[place[name]] for name in wanted]


def _refuse_duplicates(names: Any) -> None:
    if isinstance(names, Iterable):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(
                f"Column name {shown(repeated[0])} appears more than once; rename or drop one."
            )


def _refuse_infinite(matrix: Any, names: Sequence[str]) -> None:
    values = matrix.data if sparse.issparse(matrix) else matrix
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    # a finite sum proves that every value is finite, in one pass without temporaries
    if np.isfinite(total):
        return
    if sparse.issparse(matrix):
        bad = np.unique(matrix.indices[np.isinf(values)])
    else:
        bad = np.flatnonzero([np.isinf(values[:, j]).any() for j in range(values.shape[1])])
    if len(bad):
        raise ValueError(infinite_message(names[int(bad[0])]))
