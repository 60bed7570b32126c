"""What was watched, in sentences: for the terminal, and as one page."""

from __future__ import annotations

from html import escape

from laconic._typing import Floats
from laconic.data.tables.spoken import chance, share_text, short_name
from laconic.reporting.render import page_style
from laconic.watching.watch import Watched


def sentences(found: Watched) -> list[str]:
    """One statement a line, the most urgent first."""
    lines = [_verdict(found), *_mix(found), *_cost(found)]
    lines += [
        f"{short_name(one.name)!r} has moved beyond what the class mix explains: {one.largest} was "
        f"{share_text(one.before)}, is {share_text(one.now)} ({chance(one.p_value)}, all columns "
        "looked at)."
        for one in found.moved
    ]
    for name, count in found.unseen.items():
        cells = "1 cell" if count == 1 else f"{count:,} cells"
        share = share_text(count / found.n_rows)
        text = "a text" if count == 1 else "texts"
        lines.append(f"{name!r} has {cells} ({share}) with {text} never seen before.")
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
            f"alone does not explain it ({chance(found.mix.p_value)})."
        )
    if found.moved:
        return f"Alarm: columns have moved on {these}."
    return f"No alarm: on {these} nothing but the class mix may have moved."


def _mix(found: Watched) -> list[str]:
    mix = found.mix
    if_so = ", had only the class mix moved" if found.alarm else ""
    return [
        f"Share of {name!r}{if_so}: {share_text(mix.prior[k])}, between {share_text(mix.low[k])} "
        f"and {share_text(mix.high[k])} at 95 % (it was {share_text(found.reference_mix[k])})."
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
            f"Labels of {_rows(labelled['rows'], of_all)}: they cost "
            f"{labelled['cost']:.4g} a case; the band ends at {labelled['band']:.4g}."
        )
        lines += [
            f"Promised {one['promise']}: the labels of {one['rows']:,} rows show "
            f"{one['measured']:.4g}."
            for one in labelled["promises"]
            if one["measured"] is not None
        ]
    return lines


def _rows(count: int, of_all: str) -> str:
    return f"{count:,}{of_all} row{'s' if count > 1 or of_all else ''}"


def _shares(found: Watched, mix: Floats) -> str:
    pairs = zip(found.classes, mix, strict=True)
    return ", ".join(f"{name} {share_text(share)}" for name, share in pairs)


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
