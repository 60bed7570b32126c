"""What was watched, in sentences: for the terminal, and as one page."""

from __future__ import annotations

from html import escape

from laconic._typing import Floats
from laconic.reporting.render import page_style
from laconic.watching.watch import Watched


def sentences(found: Watched) -> list[str]:
    """One statement a line, the most urgent first."""
    lines = [_verdict(found), *_mix(found), *_cost(found)]
    lines += [
        f"{one.name!r} has moved beyond what the class mix explains: {one.largest} was "
        f"{one.before:.1%}, is {one.now:.1%} (p = {one.p_value:.1g}, all columns looked at)."
        for one in found.moved
    ]
    for name, count in found.unseen.items():
        share = count / found.n_rows
        lines.append(f"{name!r} has {count:,} cells ({share:.1%}) with texts never seen before.")
    return lines


def _verdict(found: Watched) -> str:
    rows = f"{found.n_rows:,} rows"
    these = f"these {rows}" if found.n_rows > 1 else "this one row"
    if found.labelled is not None and found.labelled["alarm_at"] is not None:
        return (
            f"Alarm: the costs paid left their band after {found.labelled['alarm_at']:,} of {rows}."
        )
    for one in (found.labelled or {}).get("promises", ()):
        if one["alarm_at"] is not None:
            return f"Alarm: {one['promise']} is broken since row {one['alarm_at']:,} of {rows}."
    if not found.mix_explains:
        return (
            f"Alarm: on {these} some class scores otherwise than it did; a new class mix "
            f"alone does not explain it (p = {found.mix.p_value:.1g})."
        )
    if found.moved:
        return f"Alarm: columns have moved on {these}."
    return f"No alarm: on {these} nothing but the class mix may have moved."


def _mix(found: Watched) -> list[str]:
    mix = found.mix
    if_so = ", had only the class mix moved" if found.alarm else ""
    return [
        f"Share of {name!r}{if_so}: {mix.prior[k]:.1%}, between {mix.low[k]:.1%} and "
        f"{mix.high[k]:.1%} at 95 % (it was {found.reference_mix[k]:.1%})."
        for k, name in enumerate(found.classes)
    ]


def _cost(found: Watched) -> list[str]:
    cost, low, high = found.cost
    when = ", had only the class mix moved" if found.alarm else " now"
    lines = [
        f"Expected cost of a decision{when}: {cost:.4g}, between {low:.4g} and {high:.4g} at 95 % "
        f"(it was {found.reference_cost:.4g})."
    ]
    saved = cost - found.adopted_cost
    if saved > 0 and found.mix_moved and not found.alarm:
        lines.append(
            f"Deciding for the new mix ({_shares(found, found.mix.prior)}) would save {saved:.2g} "
            f"a case{_from(found, 'adopted')}: `laconic adopt`."
        )
        lines.append(
            "If the mix may be anywhere in its interval, decide for "
            f"{_shares(found, found.cautious)}{_from(found, 'cautious')}: its worst cost is least."
        )
    if found.labelled is not None:
        labelled = found.labelled
        of_all = "" if labelled["rows"] == found.n_rows else f" of {found.n_rows:,}"
        lines.append(
            f"Labels of {labelled['rows']:,}{of_all} rows: they cost "
            f"{labelled['cost']:.4g} a case; the band ends at {labelled['band']:.4g}."
        )
        lines += [
            f"Promised {one['promise']}: the labels of {one['rows']:,} rows show "
            f"{one['measured']:.4g}."
            for one in labelled["promises"]
            if one["measured"] is not None
        ]
    return lines


def _shares(found: Watched, mix: Floats) -> str:
    pairs = zip(found.classes, mix, strict=True)
    return ", ".join(f"{name} {share:.1%}" for name, share in pairs)


def _from(found: Watched, name: str) -> str:
    """The threshold of two classes, on the probabilities that the model gives now."""
    now, other = found.thresholds["now"], found.thresholds[name]
    if now is None or other is None:
        return ""
    return f" (threshold {other:.3g} of what is {now:.3g} now)"


def to_html(found: Watched, title: str) -> str:
    """One self-contained page in the report's style."""
    lines = sentences(found)
    items = "".join(f"<li>{escape(line)}</li>" for line in lines[1:])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{page_style()}</style></head>"
        f"<body><main><h1><bdi>{escape(title)}</bdi></h1>"
        f'<p class="verdict"><strong>{escape(lines[0])}</strong></p><ul>{items}</ul></main>'
        "</body></html>\n"
    )
