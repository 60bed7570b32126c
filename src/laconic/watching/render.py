"""What was watched, in sentences: for the terminal, and as one page."""

from __future__ import annotations

from html import escape

from laconic._typing import Floats
from laconic.data.tables.spoken import is_days
from laconic.reporting.render import page_style
from laconic.watching.watch import Watched
from laconic.watching.words import Said


def sentences(found: Watched, language: str = "en") -> list[str]:
    """One statement a line, the most urgent first."""
    said = Said(language)
    lines = [_verdict(found, said), *_mix(found, said), *_cost(found, said)]
    lines += [said.moved("moved", one) for one in found.moved]
    for one in found.days:
        key = "days" if is_days(one.name) else "months"
        lines.append(said.moved(f"{key}_in_alarm" if found.alarm else key, one))
    for name, count in found.unseen.items():
        key, share = "unseen_cell" if count == 1 else "unseen", said.share(count / found.n_rows)
        lines.append(said.say(key, name=said.name(name), count=said.whole(count), share=share))
    return lines


def _verdict(found: Watched, said: Said) -> str:
    rows, labelled = said.whole(found.n_rows), found.labelled
    these = said.say("these", rows=rows) if found.n_rows > 1 else said.say("this")
    if labelled is not None and labelled["alarm_at"] is not None:
        return said.say("alarm_cost", at=said.whole(labelled["alarm_at"]), rows=rows)
    for one in (labelled or {}).get("promises", ()):
        if one["alarm_at"] is not None:
            at = said.whole(one["alarm_at"])
            return said.say("alarm_promise", promise=one["promise"], at=at, rows=rows)
    if not found.mix_explains:
        return said.say("alarm_scores", these=these, chance=said.chance(found.mix.p_value))
    if found.moved:
        return said.say("alarm_columns", these=these)
    return said.say("calm_days" if found.days else "calm", these=these)


def _mix(found: Watched, said: Said) -> list[str]:
    mix = found.mix
    if_so = said.say("if_so") if found.alarm else ""
    return [
        said.say(
            "share", name=said.name(name), if_so=if_so, share=said.share(mix.prior[k]),
            low=said.share(mix.low[k]), high=said.share(mix.high[k]),
            before=said.share(found.reference_mix[k]),
        )
        for k, name in enumerate(found.classes)
    ]  # fmt: skip


def _cost(found: Watched, said: Said) -> list[str]:
    cost, low, high = (said.number(one, 4) for one in found.cost)
    when = said.say("if_so" if found.alarm else "now")
    before = said.number(found.reference_cost, 4)
    lines = [said.say("cost", when=when, cost=cost, low=low, high=high, before=before)]
    saved = found.cost[0] - found.adopted_cost
    if saved > 0 and found.mix_moved and not found.alarm:
        for key, mix in (("adopted", found.mix.prior), ("cautious", found.cautious)):
            lines.append(
                said.say(
                    "adopt" if key == "adopted" else key, shares=_shares(found, mix, said),
                    saved=said.number(saved, 2), threshold=_threshold(found, key, said),
                )
            )  # fmt: skip
    if found.labelled is not None:
        labelled = found.labelled
        lines.append(
            said.say(
                "labels", rows=_rows(found, labelled["rows"], said),
                cost=said.number(labelled["cost"], 4), band=said.number(labelled["band"], 4),
            )
        )  # fmt: skip
        lines += [
            said.say(
                "promised", promise=one["promise"], rows=said.whole(one["rows"]),
                measured=said.number(one["measured"], 4),
            )
            for one in labelled["promises"]
            if one["measured"] is not None
        ]  # fmt: skip
    return lines


def _rows(found: Watched, count: int, said: Said) -> str:
    if count == found.n_rows == 1:
        return said.say("row")
    of_all = "" if count == found.n_rows else said.say("of_all", all=said.whole(found.n_rows))
    return said.say("rows", count=said.whole(count), of_all=of_all)


def _shares(found: Watched, mix: Floats, said: Said) -> str:
    pairs = zip(found.classes, mix, strict=True)
    return ", ".join(f"{name} {said.share(share)}" for name, share in pairs)


def _threshold(found: Watched, name: str, said: Said) -> str:
    """The threshold of two classes, on the probabilities that the model gives now."""
    now, other = found.thresholds["now"], found.thresholds[name]
    if now is None or other is None:
        return ""
    return said.say("threshold", other=said.number(other, 3), now=said.number(now, 3))


def to_html(found: Watched, title: str, language: str = "en") -> str:
    """One self-contained page in the report's style."""
    lines = sentences(found, language)
    items = "".join(f"<li>{escape(line)}</li>" for line in lines[1:])
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{page_style()}</style></head>"
        f"<body><main><h1><bdi>{escape(title)}</bdi></h1>"
        f'<p class="verdict"><strong>{escape(lines[0])}</strong></p><ul>{items}</ul></main>'
        "</body></html>\n"
    )
