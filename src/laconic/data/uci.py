"""Data sets that the UCI repository holds as plain files: where, how to read them, their digest.

The digest of a recipe is :func:`content_digest` of the parsed values, not of the bytes of the
file: a server may change line ends or compress, never a value.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import http.client
import io
import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
"""Column name -> float64 values (NaN is missing) or objects (texts, None is missing)."""

TARGET = "target"
_INTEGRAL = re.compile(r"(-?\d+)\.0+")
_NUMBERED = re.compile(r"(\D+)(\d+)(?:-|\.\.\1)(\d+)")


class DatasetNotFoundError(LookupError):
    """A named data set is neither in the folder, nor in the cache, nor downloadable."""


class DatasetDownloadError(DatasetNotFoundError):
    """A data set could not be fetched: no network, no such address, or a truncated answer."""


class DatasetChecksumError(ValueError):
    """A data set was found, but its bytes or its values are not the expected ones."""


def canonical_text(cell: str) -> str:
    """A category as text: a code written ``"3.0"`` is the code ``"3"``.

    >>> canonical_text(" 3.00 "), canonical_text("3.5")
    ('3', '3.5')
    """
    cell = cell.strip()
    found = _INTEGRAL.fullmatch(cell)
    return found[1] if found else cell


def read_column(cells: Sequence[str] | NDArray[Any], *, as_text: bool) -> NDArray[Any]:
    """Numbers when every cell is empty or a number, else texts; an empty cell is missing.

    >>> read_column(["1", "", "2.5"], as_text=False)
    array([1. , nan, 2.5])
    >>> read_column(["1.0", "", "2"], as_text=True)
    array(['1', None, '2'], dtype=object)
    """
    if isinstance(cells, np.ndarray) and cells.dtype != object:
        return cells
    if not as_text:
        try:
            return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
        except ValueError:  # a column of texts, though no list of categories names it
            pass
    return np.array([canonical_text(cell) or None for cell in cells], dtype=object)


def read_classes(labels: Iterable[Any]) -> NDArray[Any]:
    """Class labels: integers when every one reads as an integer, else texts."""
    texts = [canonical_text(str(label)) for label in labels]
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except ValueError:
        return np.array(texts, dtype=str)


def expand_ranges(words: Iterable[str]) -> list[str]:
    """Names, with ``a2..a4`` or ``Soil_Type1-3`` written out.

    >>> expand_ranges(["x", "a2..a4", "Soil_Type1-2"])
    ['x', 'a2', 'a3', 'a4', 'Soil_Type1', 'Soil_Type2']
    """
    names: list[str] = []
    for word in words:
        found = _NUMBERED.fullmatch(word)
        if found:
            stem, first, last = found[1], int(found[2]), int(found[3])
            names += [f"{stem}{number}" for number in range(first, last + 1)]
        else:
            names.append(word)
    return names


def declared_columns(text: str, features: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns that an index declares categorical, and those that it declares 0/1.

    The text lists names separated by spaces, ranges (``a2..a16``, ``Soil_Type1-40``), ``all``, or
    ``all but NAME ...``; with ``0/1`` in the text, ranges and ``all`` are indicators.

    >>> declared_columns("all but c", ["a", "b", "c"])
    (['a', 'b'], [])
    >>> declared_columns("colour", ["colour", "size"])
    (['colour'], [])
    >>> declared_columns("a1..a2 are 0/1", ["a1", "a2", "a3"])
    ([], ['a1', 'a2'])
    """
    words = text.split()
    if words[:1] == ["all"]:
        spared = set(words[2:]) if words[1:2] == ["but"] else set()
        chosen = [name for name in features if name not in spared]
        return ([], chosen) if "0/1" in words else (chosen, [])
    plain = set(words)
    ranged = set(expand_ranges(words)) - plain
    if "0/1" in text:
        return [n for n in features if n in plain], [n for n in features if n in ranged]
    return [n for n in features if n in plain | ranged], []


def content_digest(columns: Columns, labels: NDArray[Any]) -> str:
    """sha256 of the values of a table, whatever the spelling of its file.

    Column by column, row order kept: float64 in little-endian bytes (one NaN, one zero), texts in
    UTF-8 between unit separators, then the class texts. Column names do not enter: they are ours.

    >>> one = content_digest({"a": np.array([1.0, np.nan])}, np.array(["x", "y"]))
    >>> one == content_digest({"b": np.array([1.0, -np.nan])}, np.array(["x", "y"]))
    True
    >>> one == content_digest({"a": np.array([1.0, 2.0])}, np.array(["x", "y"]))
    False
    """
    digest = hashlib.sha256()
    for column in columns.values():
        if column.dtype == object:
            digest.update(b"text\x1e")
            digest.update("\x1f".join("" if cell is None else cell for cell in column).encode())
        else:
            values = np.where(np.isnan(column), np.nan, column + 0.0)
            digest.update(b"number\x1e")
            digest.update(values.astype("<f8").tobytes())
        digest.update(b"\x1d")
    digest.update("\x1f".join(str(label) for label in labels).encode())
    return digest.hexdigest()


BASE = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
TIMEOUT_SECONDS = 60.0
INDEX_FIELDS = ("name", "file", "sha256", "categorical_columns", "notes")


@dataclass(frozen=True)
class Recipe:
    """Files below :data:`BASE`, read one after the other, and what their columns are.

    ``columns`` are the names in the order of the raw file, ranges allowed; ``-`` drops a column
    and ``target`` is the class. ``categorical`` is written as in an index.
    """

    files: tuple[str, ...]
    columns: str
    digest: str
    categorical: str = ""
    separator: str | None = ","

    @property
    def raw_names(self) -> list[str]:
        return expand_ranges(self.columns.split())

    @property
    def features(self) -> list[str]:
        return [name for name in self.raw_names if name not in ("-", TARGET)]


def parse(recipe: Recipe, contents: list[bytes]) -> tuple[Columns, list[str]]:
    """Feature columns and class texts of the raw files.

    A line with another number of cells than the recipe's columns is a comment or a header. The
    digest of the result is checked after, so nothing can get lost that way unseen.
    """
    names = recipe.raw_names
    rows = []
    for content in contents:
        for line in content.decode("utf-8-sig").splitlines():
            cells = [cell.strip() for cell in line.split(recipe.separator)]
            if len(cells) == len(names):
                rows.append(["" if cell == "?" else cell for cell in cells])
    if not rows:
        raise DatasetChecksumError("The downloaded files hold no row of the expected shape.")
    cells_of = dict(zip(names, zip(*rows, strict=True), strict=True))
    categorical, _ = declared_columns(recipe.categorical, recipe.features)
    columns = {
        name: read_column(cells_of[name], as_text=name in categorical) for name in recipe.features
    }
    # adult.test writes its classes with a full stop, adult.data without
    return columns, [canonical_text(cell.rstrip(".")) for cell in cells_of[TARGET]]


def fetch(name: str, folder: Path) -> Path:
    """Download a set, check its values and write it in ``folder`` as NAME.csv.gz with its index."""
    recipe = RECIPES[name]
    contents = [_download(name, BASE + file) for file in recipe.files]
    columns, labels = parse(recipe, contents)
    found = content_digest(columns, read_classes(labels))
    if found != recipe.digest:
        raise DatasetChecksumError(
            f"Data set {name!r}: the values downloaded from {BASE + recipe.files[0]} have digest "
            f"{found}, expected {recipe.digest}. The file was cut or changed: try again, or put a "
            "good copy in the folder LACONIC_DATA."
        )
    folder.mkdir(parents=True, exist_ok=True)
    packed = _to_csv_gz(columns, labels)
    file = folder / f"{name}.csv.gz"
    _replace(file, packed)
    _add_to_index(
        folder,
        {
            "name": name,
            "file": file.name,
            "sha256": hashlib.sha256(packed).hexdigest(),
            "categorical_columns": recipe.categorical,
            "notes": f"downloaded from {BASE + recipe.files[0]}",
        },
    )
    return file


def _download(name: str, url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
        return gzip.decompress(content) if url.endswith(".gz") else content
    except urllib.error.HTTPError as error:
        reason = f"the server answered {error.code} {error.reason}"
        error.close()
    except http.client.IncompleteRead as error:
        reason = f"the answer stopped after {len(error.partial)} bytes"
    except (OSError, EOFError) as error:  # URLError (no network, time out), broken gzip
        reason = str(getattr(error, "reason", error))
    raise DatasetDownloadError(
        f"Data set {name!r} could not be downloaded from {url}: {reason}. Try again, or put "
        f"{name}.csv.gz with an INDEX.csv in a folder and set LACONIC_DATA to it."
    )


def _to_csv_gz(columns: Columns, labels: list[str]) -> bytes:
    """The house format, with the shortest text that gives each number back, and no time stamp."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, TARGET])
    spelled = [
        ["" if cell is None else cell for cell in column]
        if column.dtype == object
        else ["" if value != value else f"{value:.17g}" for value in column.tolist()]
        for column in columns.values()
    ]
    writer.writerows(zip(*spelled, labels, strict=True))
    return gzip.compress(text.getvalue().encode(), mtime=0)


def _add_to_index(folder: Path, line: dict[str, str]) -> None:
    index = folder / "INDEX.csv"
    lines = []
    if index.is_file():
        with index.open(newline="", encoding="utf-8") as text:
            lines = [old for old in csv.DictReader(text) if old["name"] != line["name"]]
    table = io.StringIO()
    writer = csv.DictWriter(table, INDEX_FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted([*lines, line], key=lambda each: each["name"]))
    _replace(index, table.getvalue().encode())


def _replace(file: Path, content: bytes) -> None:
    """Write all or nothing: a reader never sees half a file."""
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    with os.fdopen(handle, "wb") as out:
        out.write(content)
    os.replace(draft, file)


_THYROID_VISIT = (
    "target age sex on_thyroxine query_on_thyroxine on_antithyroid_medication thyroid_surgery "
    "query_hypothyroid query_hyperthyroid pregnant sick tumor lithium goitre TSH_measured TSH "
    "T3_measured T3 TT4_measured TT4 T4U_measured T4U FTI_measured FTI TBG_measured TBG"
)
_THYROID_KINDS = (
    "sex on_thyroxine query_on_thyroxine on_antithyroid_medication thyroid_surgery "
    "query_hypothyroid query_hyperthyroid pregnant sick tumor lithium goitre TSH_measured "
    "T3_measured TT4_measured T4U_measured FTI_measured TBG_measured"
)

RECIPES: dict[str, Recipe] = {
    "abalone": Recipe(
        ("abalone/abalone.data",),
        "Sex Length Diameter Height WholeWeight ShuckedWeight VisceraWeight ShellWeight target",
        "2452b4f60c5c7acbb5b10b40e7bc0c40a2a4a727bbd2992b81bdf6e08085adb6",
        "Sex",
    ),
    "adult": Recipe(
        ("adult/adult.data", "adult/adult.test"),
        "age workclass fnlwgt education education_num marital_status occupation relationship race "
        "sex capital_gain capital_loss hours_per_week native_country target",
        "4fb0b42e8576c804dfd9239ae6b8b6e3b7dbca4f44185f5d504198cfee6bfdb9",
        "workclass education marital_status occupation relationship race sex native_country",
    ),
    "australian": Recipe(
        ("statlog/australian/australian.dat",),
        "A1..A14 target",
        "c7711152087fef98f2ea56a4c871a1908f6b408209ff0bd31f9bcd45804e8b1b",
        "A1 A4 A5 A6 A8 A9 A11 A12",
        None,
    ),
    "breast": Recipe(
        ("breast-cancer-wisconsin/breast-cancer-wisconsin.data",),
        "- clump_thickness cell_size_uniformity cell_shape_uniformity marginal_adhesion "
        "single_epithelial_size bare_nuclei bland_chromatin normal_nucleoli mitoses target",
        "fc570f6e11142c7a9318f131282a9328bf01d2f7c20fb7da0354708b8eb8da9b",
    ),
    "bupa": Recipe(
        ("liver-disorders/bupa.data",),
        "mcv alkphos sgpt sgot gammagt drinks target",
        "1f4f6deb8387e958c8ed90c5c67336df06343a46596b2422ba7f8958de805002",
    ),
    "car": Recipe(
        ("car/car.data",),
        "buying maint doors persons lug_boot safety target",
        "3f6512eb2353aa3e4ca04b7f17e0475423c39279d6aba557f75c81f6a71bb141",
        "all",
    ),
    "cmc": Recipe(
        ("cmc/cmc.data",),
        "wife_age wife_education husband_education children wife_religion wife_working "
        "husband_occupation living_standard media_exposure target",
        "94d213010e6267bf70d1d4fca4552497d1401861774d3a8b8a0a6f4f86c09aca",
        "wife_religion wife_working husband_occupation media_exposure",
    ),
    "covtype": Recipe(
        ("covtype/covtype.data.gz",),
        "Elevation Aspect Slope Horizontal_Distance_To_Hydrology Vertical_Distance_To_Hydrology "
        "Horizontal_Distance_To_Roadways Hillshade_9am Hillshade_Noon Hillshade_3pm "
        "Horizontal_Distance_To_Fire_Points Wilderness_Area1-4 Soil_Type1-40 target",
        "6585653002fd07a41b3d4b23167d332a1e0ae81d0456565910c02c361fbfe337",
        "Wilderness_Area1-4 Soil_Type1-40 (0/1)",
    ),
    "crx": Recipe(
        ("credit-screening/crx.data",),
        "A1..A15 target",
        "b80deaf905aa5e7beb7ff87f1ee960c0df99eb3779cd8f4deabc23581a2408fe",
        "A1 A4 A5 A6 A7 A9 A10 A12 A13",
    ),
    "ecoli": Recipe(
        ("ecoli/ecoli.data",),
        "- mcg gvh lip chg aac alm1 alm2 target",
        "e57240124c661e9e8acf3f577841ca01c57168adff6db055db459e4c20fdb9b2",
        separator=None,
    ),
    "german": Recipe(
        ("statlog/german/german.data",),
        "checking_status duration credit_history purpose credit_amount savings employment "
        "installment_rate personal_status other_parties residence_since property age "
        "other_installment_plans housing existing_credits job num_dependents telephone "
        "foreign_worker target",
        "fb453187286b3d98cfc891c9dd6ac3020be973d5d469128e64494fbb9aaad227",
        "checking_status credit_history purpose savings employment personal_status other_parties "
        "property other_installment_plans housing job telephone foreign_worker",
        None,
    ),
    "german_numeric": Recipe(
        ("statlog/german/german.data-numeric",),
        "A1..A24 target",
        "513a964f6b78fd632f5a90b6a058a257411c0cdf377656f0f8380ba29aadbcc3",
        separator=None,
    ),
    "glass": Recipe(
        ("glass/glass.data",),
        "- RI Na Mg Al Si K Ca Ba Fe target",
        "7783da2dbc9d5942c078f7a77e7270a03c5dc0ba3857d4295c20148d8dae768b",
    ),
    "heart": Recipe(
        ("statlog/heart/heart.dat",),
        "age sex chest_pain resting_bp chol fasting_sugar rest_ecg max_hr exercise_angina oldpeak "
        "slope vessels thal target",
        "898cafc352a624b926cf17bca3aeacc69eacd226013fdc3e7b110a8b90f6dbd6",
        "sex chest_pain fasting_sugar rest_ecg exercise_angina thal",
        None,
    ),
    "hepatitis": Recipe(
        ("hepatitis/hepatitis.data",),
        "target age sex steroid antivirals fatigue malaise anorexia liver_big liver_firm "
        "spleen_palpable spiders ascites varices bilirubin alk_phosphate sgot albumin protime "
        "histology",
        "57d41ee261d11de95710abe8137951af1f05dc1dae55202cee7bc866c642fe5d",
        "sex steroid antivirals fatigue malaise anorexia liver_big liver_firm spleen_palpable "
        "spiders ascites varices histology",
    ),
    "hypothyroid": Recipe(
        ("thyroid-disease/hypothyroid.data",),
        _THYROID_VISIT,
        "56cf1a1d82e2884ef1043ced2e629c07bc051dc5ed7c62740ad8665fff5f7737",
        _THYROID_KINDS,
    ),
    "ionosphere": Recipe(
        ("ionosphere/ionosphere.data",),
        "a1..a34 target",
        "093f36ebbe210f00348db945948878629182b07a2a35bf60fdb1b6e56148ef81",
    ),
    "iris": Recipe(
        ("iris/iris.data",),
        "sepal_length sepal_width petal_length petal_width target",
        "43b225dc1594ffb104886ae495768c39bd633c3628d56c9c8e86b4581e66e3cf",
    ),
    "letter": Recipe(
        ("letter-recognition/letter-recognition.data",),
        "target x_box y_box width high onpix x_bar y_bar x2bar y2bar xybar x2ybr xy2br x_ege xegvy "
        "y_ege yegvx",
        "69fc1259e61f5cd3c9cfae53ab24ab3340fa26e98b81139d736746f134df0b37",
    ),
    "mushroom8124": Recipe(
        ("mushroom/agaricus-lepiota.data",),
        "target cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing "
        "gill_size gill_color stalk_shape stalk_root stalk_surface_above_ring "
        "stalk_surface_below_ring "
        "stalk_color_above_ring stalk_color_below_ring veil_type veil_color ring_number ring_type "
        "spore_print_color population habitat",
        "8227d6a3e1b15af8fee9763d92b9ee3a806369cf5d0ac240d7ad197f198c2ca4",
        "all",
    ),
    "pendigits": Recipe(
        ("pendigits/pendigits.tra", "pendigits/pendigits.tes"),
        "input1..input16 target",
        "4004dc8556bae71390037aa900422e7da94cbe30e329aa81cbdcdd964a3639cb",
    ),
    "segmentation": Recipe(
        ("image/segmentation.data", "image/segmentation.test"),
        "target region_centroid_col region_centroid_row region_pixel_count short_line_density_5 "
        "short_line_density_2 vedge_mean vedge_sd hedge_mean hedge_sd intensity_mean rawred_mean "
        "rawblue_mean rawgreen_mean exred_mean exblue_mean exgreen_mean value_mean "
        "saturation_mean hue_mean",
        "9c9653fe8c05d8ae7849d05786947967c683d8bb9482b86ce10dffb75c17c9dc",
    ),
    "sickeuthyroid": Recipe(
        ("thyroid-disease/sick-euthyroid.data",),
        _THYROID_VISIT,
        "071c98410cded0a6337730aa04ce7d8f90fd68b3cb7e39e840dcfe891925a1eb",
        _THYROID_KINDS,
    ),
    "sonar": Recipe(
        ("undocumented/connectionist-bench/sonar/sonar.all-data",),
        "a1..a60 target",
        "f73deb47378ad4bd38f29bb8f9ee9d0b9c23b3b08cce835d809657d9945f86ab",
    ),
    "spam": Recipe(
        ("spambase/spambase.data",),
        "w1..w48 ch1..ch6 cap_avg cap_longest cap_total target",
        "cbd0b7697440bcc069aebb9ee23c0a53f9d4246633dcedd2a499cc2df738e761",
    ),
    "thyroid": Recipe(
        ("thyroid-disease/ann-train.data", "thyroid-disease/ann-test.data"),
        "a1..a21 target",
        "95af2b21b30b82d5bba0300c1a8d55e131b80a34454452cb67a2ad06be877d78",
        "a2..a16 are 0/1",
        None,
    ),
    "tictactoe": Recipe(
        ("tic-tac-toe/tic-tac-toe.data",),
        "tl tm tr ml mm mr bl bm br target",
        "eb715306c9db14e87026f44d5b05dca3a4fb94250a57f67a9d4381669662a240",
        "all",
    ),
    "wine": Recipe(
        ("wine/wine.data",),
        "target alcohol malic_acid ash alcalinity magnesium phenols flavanoids "
        "nonflavanoid_phenols proanthocyanins color_intensity hue od280 proline",
        "567de565550715b267f7fdd9c266d3b031d2c95c1fb28018b1d0c02cd98ffcea",
    ),
    "yeast": Recipe(
        ("yeast/yeast.data",),
        "- mcg gvh alm mit erl pox vac nuc target",
        "d1b7aa5d5190144f35bd7fd99b789ccf5b13db7ff6a9230d22ed446feea3f397",
        separator=None,
    ),
}
