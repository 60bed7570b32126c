"""Document 000, Hérault and Grandvalet (2008): every printed number, figure and claim.

Draws: 40 samples of two gaussians for section 4.1, the ten splits of Covertype for section 4.2. A
quick run takes ten samples and two splits, of which Table 4 and the times see every fourth row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from laconic._typing import Floats
from laconic.core.losses import LogisticLoss, TruncatedLogistic
from laconic.papers.drawing import Panel, Series, plot
from laconic.papers.gray_zone import (
    TABLE_2_ZONES,
    THRESHOLDS,
    TRUE_BINS,
    ZONES,
    asymptotic_support,
    counts_draw,
    table_1_draw,
    table_2_draw,
    table_3_draw,
)
from laconic.papers.gray_zone_machines import seconds_draw, table_4_draw
from laconic.papers.registry import Cell, Draws, Figure, Measured

DOCUMENT = "000"
TABLE_2 = {
    "cost 0.3": (4.43, 3.92, 21.02),
    "cost 0.5": (4.28, 12.68, 4.13),
    "support": (200.0, 43.0, 64.0),
}
"""Expected cost in percent at two thresholds, and support vectors, for three zones."""
LOG_PENALTY = (0.0, 0.4, 1.2)
TABLE_3 = {
    "cost": ((1.86, 1.86, 1.85, 1.85, 1.83, 1.78), (0.01, 0.01, 0.01, 0.01, 0.02, 0.02)),
    "threshold": ((9.5, 9.0, 9.0, 9.0, 8.8, 8.8), (1.3, 1.1, 0.9, 0.6, 0.2, 0.0)),
    "support": ((100.0, 65.5, 53.5, 40.5, 34.0, 27.9), ()),
}
"""Mean test cost (hundredths), threshold and share of rows in the model (percent), and their
standard deviations, for six zones."""
WIDTHS = (100.0, 71.6, 46.4, 21.2, 11.0, 2.2)
TABLE_4 = {
    "standard": ((3.75, 0.23), (12.84, 0.79)),
    "bias corrected": ((2.31, 0.12), (13.16, 1.13)),
    "weighted": ((1.79, 0.02), (26.19, 0.60)),
}
"""Mean test cost (hundredths) and share of support vectors (percent) of linear SVMs."""
COUNTS = {
    "positives": 20510.0, "negatives": 211840.0, "share": 8.8, "columns": 54.0, "binary": 44.0,
    "training": 23235.0,
}  # fmt: skip
N_SPLITS = 10
"""Splits that the printed means and standard deviations of section 4.2 come from."""
NAMES = {"cost": "mean test cost x 100", "threshold": "threshold (%)", "support": "rows kept (%)"}


def zone_name(zone: tuple[float, float], unit: float = 1.0) -> str:
    """As the paper writes it: [0.2, 0.4], or 7.8-10.0 in percent."""
    low, high = zone
    return f"[{low:g}, {high:g}]" if unit == 1.0 else f"{unit * low:.1f}-{unit * high:.1f}"


# ---- what the draws give ---------------------------------------------------------------------


def gaussians(draws: Draws, zone: int) -> list[dict[str, Any]]:
    """One column of Table 2, sample by sample."""
    first = 1000 * draws.seed
    return draws.each(table_2_draw, [(first + k, zone) for k in range(draws.count(40, 10))])


def _splits(draws: Draws) -> list[tuple[int, int, int]]:
    """Seed, split and thinning of what is slow."""
    thin = 4 if draws.quick else 1
    return [(draws.seed, split, thin) for split in range(draws.count(10, 2))]


def covertype(draws: Draws, zone: int) -> list[dict[str, Any]]:
    """One column of Table 3, split by split."""
    every = range(draws.count(10, 2))
    return draws.each(table_3_draw, [(draws.seed, split, zone) for split in every])


def of_gaussians(draws: Draws, *, zone: int, what: str) -> Measured:
    return Measured.of(own[what] for own in gaussians(draws, zone))


def of_figure(draws: Draws, *, zone: int, number: Callable[[Floats, Floats], float]) -> Measured:
    """A number of the quantiles inside the zone: that of the zone's model minus plain's."""
    low, high = TABLE_2_ZONES[zone]
    truth = np.array(TRUE_BINS)
    inside = (truth > low) & (truth < high)

    def of(own: dict[str, Any]) -> float:
        return number(np.array(own["quantiles"])[inside], truth[inside])

    both = zip(gaussians(draws, zone), gaussians(draws, 0), strict=True)
    return Measured.of(of(own) - of(plain) for own, plain in both)


def _distance(quantiles: Floats, truth: Floats) -> float:
    return float(np.abs(quantiles[:, 1] - truth).mean())


def _spread(quantiles: Floats, truth: Floats) -> float:
    return float((quantiles[:, 2] - quantiles[:, 0]).mean())


def saturation(draws: Draws, *, zone: int, place: int) -> Measured:
    """The median estimate in the first or last bin of the true probability."""
    return Measured.of(own["quantiles"][place][1] for own in gaussians(draws, zone))


def of_covertype(draws: Draws, *, zone: int, what: str, spread: bool = False) -> Measured:
    values = [own[what] for own in covertype(draws, zone)]
    return Measured.spread(values, N_SPLITS) if spread else Measured.of(values)


def cost_difference(draws: Draws, *, zone: int) -> Measured:
    """Test cost of a zone minus that of plain regression, on the same split."""
    both = zip(covertype(draws, zone), covertype(draws, 0), strict=True)
    return Measured.of(own["cost"] - plain["cost"] for own, plain in both)


def curve_width(draws: Draws, *, zone: int) -> Measured:
    """Width of the thresholds whose cost is within 5 % of the least, in percent (figure 6)."""
    widths = []
    for own in covertype(draws, zone):
        near = np.flatnonzero(np.array(own["curve"]) <= 1.05 * min(own["curve"]))
        widths.append(100 * (THRESHOLDS[near[-1]] - THRESHOLDS[near[0]]))
    return Measured.of(widths)


def best_threshold(draws: Draws) -> Measured:
    """The threshold of least test cost of the narrowest zone, in percent (figure 6)."""
    least = [int(np.argmin(own["curve"])) for own in covertype(draws, len(ZONES) - 1)]
    return Measured.of(100 * THRESHOLDS[k] for k in least)


def difference(draws: Draws, *, of: Callable[..., Measured], zone: int) -> Measured:
    """A mean number of a zone minus that of plain regression, with both spreads."""
    own, plain = of(draws, zone=zone), of(draws, zone=0)
    return Measured(own.mean - plain.mean, float(np.hypot(own.sd, plain.sd)), own.n_draws)


def machine(draws: Draws, *, name: str, column: int, spread: bool = False) -> Measured:
    """A number of Table 4."""
    values = [own[name][column] for own in draws.each(table_4_draw, _splits(draws))]
    return Measured.spread(values, N_SPLITS) if spread else Measured.of(values)


def time_ratio(draws: Draws, *, other: str, log2: bool = False) -> Measured:
    """CPU seconds of the narrowest zone over those of another fit."""
    found = draws.each(seconds_draw, _splits(draws)[:3])
    ratios = [own["narrow"] / own[other] for own in found]
    return Measured.of(np.log2(ratios) if log2 else ratios)


def count(draws: Draws, *, name: str) -> Measured:
    return Measured.exact(draws.each(counts_draw, [()])[0][name])


def exact(draws: Draws, *, value: float) -> Measured:
    return Measured.exact(value)


def multipliers(draws: Draws) -> Measured:
    return Measured.of(draws.each(table_1_draw, [(seed,) for seed in range(4)]))


# ---- the cells -------------------------------------------------------------------------------


def cells() -> list[Cell]:
    """All cells of the document, in its order."""
    rows = [*_criterion(), *_table_2(), *_figures_3_to_5(), *_table_3(), *_figure_6(), *_table_4(),
            *_times()]  # fmt: skip
    return [Cell(DOCUMENT, *row) for row in rows]


# place, what, published, protocol, compute, and then remark and printed standard deviation
Row = tuple[Any, ...]


def _criterion() -> Iterator[Row]:
    loss, plain = TruncatedLogistic(0.2, 0.4), LogisticLoss()
    z = np.linspace(-4.0, 4.0, 81)
    below = z <= loss.positions[1]
    protocol = "the loss on a grid of scores in [-4, 4], zone [0.2, 0.4], a positive example"
    apart = np.abs(loss.value(z, np.ones(81)) - plain.value(z))[below].max()
    flat = np.ptp(loss.value(z[~below], np.ones((~below).sum())))
    yield ("Figure 1", "log loss of a positive at p = 0.5", "0.6931 within 0.0001", protocol,
           partial(exact, value=float(plain.value(0.0))))  # fmt: skip
    yield ("Figure 2", "distance from the log loss below p_max", 0.0, protocol,
           partial(exact, value=float(apart)))  # fmt: skip
    yield ("Figure 2", "change of the loss above p_max", 0.0, protocol,
           partial(exact, value=float(flat)))  # fmt: skip
    yield ("Table 1", "distance of alpha from the printed formulas", "0 within 0.000001",
           "kernel fits on 200 rows, zones [0.2, 0.4] and [0.4, 0.6], relative gap 1e-10; the "
           "largest distance over the three sets of rows, one value for each sample",
           multipliers)  # fmt: skip


ASYMPTOTIC = (
    "the integral of the rows kept under the true probabilities; 'of the order of 10 %' is read as "
    "9 to 11"
)


def _table_2() -> Iterator[Row]:
    protocol = (
        "two gaussians, 200 training rows; width of the kernel by Parzen's estimate on a grid of "
        "powers 10^0.1; penalty by the criterion on 200 validation rows; 20,000 test rows"
    )
    printed = {"cost 0.3": "cost (%) at 0.3", "cost 0.5": "cost (%) at 0.5", "support": "supports"}
    for what, values in TABLE_2.items():
        for zone, value in enumerate(values):
            name = f"{printed[what]}, {zone_name(TABLE_2_ZONES[zone])}"
            # 15 % is the cost at 0.5 of deciding every row negative
            remark = "Ours decides nearly every row negative." if value == 12.68 else ""
            compute = partial(of_gaussians, zone=zone, what=what)
            yield "Table 2", name, value, protocol, compute, remark
    for zone, power in enumerate(LOG_PENALTY):
        yield ("Section 4.1", f"log10 of the penalty, {zone_name(TABLE_2_ZONES[zone])}", power,
               protocol, partial(of_gaussians, zone=zone, what="log10 penalty"))  # fmt: skip
    yield ("Section 4.1", "log10 of the width of the kernel", -0.3, protocol,
           partial(of_gaussians, zone=0, what="log10 width"))  # fmt: skip
    for own in TABLE_2_ZONES[1:]:
        named = f"asymptotic share of support vectors (%), {zone_name(own)}"
        compute = partial(exact, value=asymptotic_support(*own))
        yield "Section 4.1", named, "10 within 1", ASYMPTOTIC, compute
    for zone, what in ((1, "cost 0.3"), (2, "cost 0.5")):
        named = f"{printed[what]}, {zone_name(TABLE_2_ZONES[zone])} - [0, 1]"
        remark = "The text says 'a little more precise' where the threshold is in the zone."
        yield "Section 4.1", named, "< 0", protocol, partial(paired, zone=zone, what=what), remark


def paired(draws: Draws, *, zone: int, what: str) -> Measured:
    """A zone minus plain regression, sample by sample."""
    both = zip(gaussians(draws, zone), gaussians(draws, 0), strict=True)
    return Measured.of(own[what] - plain[what] for own, plain in both)


def _figures_3_to_5() -> Iterator[Row]:
    protocol = (
        "estimates on 20,000 test rows in 20 bins of the true probability; the zone's model minus "
        "plain regression in the bins inside the zone, one value for each sample"
    )
    for zone in (1, 2):
        place = f"Figure {3 + zone}"
        for what, number in (("distance of the median from the truth", _distance),
                             ("width of the 80 % interval", _spread)):  # fmt: skip
            name = f"{what} inside the zone, {zone_name(TABLE_2_ZONES[zone])} - plain"
            yield place, name, "< 0", protocol, partial(of_figure, zone=zone, number=number)
        low, high = TABLE_2_ZONES[zone]
        for value, at in ((low, 0), (high, 19)):
            said = "below 0.05" if at == 0 else "above 0.95"
            yield (place, f"median estimate where the truth is {said}", f"{value:g} within 0.1",
                   "the median of the estimates in a bin of the true probability; 'tend to "
                   "saturate' is read as within 0.1 of the bound",
                   partial(saturation, zone=zone, place=at))  # fmt: skip
    protocol = "estimates on 20,000 test rows in 20 bins of the true probability"
    named = "mean distance of the median from the truth on [0, 1], plain"
    yield "Figure 3", named, "0 within 0.1", protocol, _plain_distance


def _plain_distance(draws: Draws) -> Measured:
    truth = np.array(TRUE_BINS)
    return Measured.of(_distance(np.array(own["quantiles"]), truth) for own in gaussians(draws, 0))


COVERTYPE = (
    "Covertype, Krummholz against Spruce/Fir; train on a tenth, test on nine; penalty (10^-2 to "
    "10^3) and threshold by 5-fold cross-validation"
)


def _table_3() -> Iterator[Row]:
    for name, value in COUNTS.items():
        said = "share of positives (%)" if name == "share" else f"{name} of the set"
        yield "Section 4.2", said, value, "count", partial(count, name=name)
    for (low, high), width in zip(ZONES, WIDTHS, strict=True):
        named = f"p_max - p_min (%), {zone_name((low, high), 100)}"
        yield ("Table 3", named, f"{width:g} within 0.15",
               "difference of the printed bounds, which are rounded to 0.1",
               partial(exact, value=100 * (high - low)))  # fmt: skip
    for low, high in ZONES[1:]:
        named = zone_name((low, high), 100)
        yield ("Table 3", f"sqrt(p_min p_max) (%), {named}", "8.8 within 0.2",
               "the printed bounds", partial(exact, value=100 * float(np.sqrt(low * high))),
               "The printed zones are centred in log-odds instead.")  # fmt: skip
        centre = TruncatedLogistic(low, high).centre
        yield ("Table 3", f"centre in log-odds (%), {named}", "8.8 within 0.6",
               "the printed bounds", partial(exact, value=100 * float(centre)))  # fmt: skip
    for what, (means, spreads) in TABLE_3.items():
        for zone, value in enumerate(means):
            named = f"{NAMES[what]}, {zone_name(ZONES[zone], 100)}"
            compute = partial(of_covertype, zone=zone, what=what)
            yield "Table 3", named, value, COVERTYPE, compute, "", (*spreads, *[0.0] * 6)[zone]
        for zone, value in enumerate(spreads):
            named = f"{NAMES[what]}, standard deviation, {zone_name(ZONES[zone], 100)}"
            compute = partial(of_covertype, zone=zone, what=what, spread=True)
            yield "Table 3", named, value, COVERTYPE, compute
    for zone in range(1, len(ZONES)):
        named = f"test cost x 100, {zone_name(ZONES[zone], 100)} - plain"
        claim = "< 0" if TABLE_3["cost"][0][zone] < 1.86 else "0 within 0.01"
        yield ("Table 3", named, claim, f"{COVERTYPE}; paired difference on each split",
               partial(cost_difference, zone=zone))  # fmt: skip


def _figure_6() -> Iterator[Row]:
    protocol = f"{COVERTYPE}; test cost at thresholds 2 to 18 % in steps of 0.2"
    narrow = len(ZONES) - 1
    yield ("Figure 6", "width of the minimum (%), narrowest zone - plain", "< 0",
           f"{protocol}; thresholds whose cost is within 5 % of the least",
           partial(difference, of=curve_width, zone=narrow))  # fmt: skip
    for zone, named in ((0, "plain"), (narrow, "narrowest zone")):
        yield ("Figure 6", f"width of the minimum (%), {named}", "drawn, not printed",
               f"{protocol}; thresholds whose cost is within 5 % of the least",
               partial(curve_width, zone=zone))  # fmt: skip
    yield ("Figure 6", "threshold of least cost (%), narrowest zone", "8.8 within 0.3", protocol,
           best_threshold)  # fmt: skip


TIES = (
    "With 44 binary columns up to three quarters of the rows lie exactly on the margin: which of "
    "them support the machine, and where among their equal scores it is cut, is not unique."
)


def _table_4() -> Iterator[Row]:
    protocol = (
        "linear SVMs on the same splits; C (10^-3 to 1), and the threshold where it is corrected, "
        "by 5-fold cross-validated cost on every fourth training row"
    )
    for name, printed in TABLE_4.items():
        more = "" if name == "weighted" else TIES
        for column, (value, spread) in enumerate(printed):
            what = ("mean test cost x 100", "support vectors (%)")[column]
            compute = partial(machine, name=name, column=column)
            yield "Table 4", f"{what}, {name}", value, protocol, compute, more, spread
            compute = partial(machine, name=name, column=column, spread=True)
            named = f"{what}, standard deviation, {name}"
            yield "Table 4", named, spread, protocol, compute, more


def _times() -> Iterator[Row]:
    protocol = (
        "CPU seconds of one fit on the training rows of a split, best of three, penalty 1, "
        "relative gap 1e-4; zone 7.8-10.0"
    )
    yield ("Section 5", "time of the narrowest zone / time of plain regression", "< 1", protocol,
           partial(time_ratio, other="plain"),
           "Fewer rows count, but our plain Newton method is cheaper than the search for the rows "
           "on the kinks.")  # fmt: skip
    yield ("Section 5", "log2 of time of the narrowest zone / time of the weighted SVM",
           "0 within 1", f"{protocol}; 'comparable' is read as within a factor of 2",
           partial(time_ratio, other="weighted SVM", log2=True))  # fmt: skip


# ---- the figures -----------------------------------------------------------------------------


def figures() -> list[Figure]:
    """Our figures 1 to 6."""
    out = [
        Figure(DOCUMENT, "1", "Loss of the log-likelihood.", partial(_losses, zone=(0.0, 1.0))),
        Figure(DOCUMENT, "2", "Loss of the local log-likelihood, zone [0.2, 0.4].",
               partial(_losses, zone=(0.2, 0.4))),
    ]  # fmt: skip
    for zone, own in enumerate(TABLE_2_ZONES):
        caption = (
            f"Median and 80 % interval of the estimated probability against the true one, zone "
            f"{zone_name(own)}, means of the quantiles over samples."
        )
        out.append(Figure(DOCUMENT, str(3 + zone), caption, partial(_estimates, zone=zone)))
    caption = "Test cost against the threshold: plain regression and zone 7.8-10.0 %, first split."
    return [*out, Figure(DOCUMENT, "6", caption, _cost_curves)]


def _losses(draws: Draws, *, zone: tuple[float, float]) -> str:
    p = np.linspace(0.01, 0.99, 99)
    loss = TruncatedLogistic(*zone)
    z = np.log(p / (1.0 - p))
    own = [Series(name, p, loss.value(z, np.full(99, sign)))
           for name, sign in (("positive", 1.0), ("negative", -1.0))]  # fmt: skip
    return plot(Panel(f"zone {zone_name(zone)}", "estimated probability", "loss", own, (0.0, 1.0)))


def _estimates(draws: Draws, *, zone: int) -> str:
    low, middle, high = np.mean([own["quantiles"] for own in gaussians(draws, zone)], axis=0).T
    series = [
        Series("80 %", TRUE_BINS, low, "band", high),
        Series("median", TRUE_BINS, middle, colour="#1b5e9e"),
        Series("truth", [0.0, 1.0], [0.0, 1.0], "dashed", colour="#6b6b6b"),
    ]
    title = f"zone {zone_name(TABLE_2_ZONES[zone])}"
    unit = (0.0, 1.0)
    return plot(Panel(title, "true probability", "estimated probability", series, unit, unit))


def _cost_curves(draws: Draws) -> str:
    series = [
        Series(name, 100 * np.array(THRESHOLDS), covertype(draws, zone)[0]["curve"])
        for name, zone in (("plain", 0), ("zone 7.8-10.0 %", len(ZONES) - 1))
    ]
    panel = Panel("Covertype", "threshold (%)", "test cost x 100", series, y_range=(1.7, 3.0))
    return plot(panel)
