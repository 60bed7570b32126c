"""What was typed after an option, as the job wants it; one sentence where it cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_cost_words(words: list[str] | None, path: Path | None) -> dict[str, Any]:
    from laconic.job import read_costs

    if path is not None:
        if words:
            raise ValueError("Give --cost or --costs, not both.")
        return dict(read_costs(path))
    costs = {"fp": 1.0, "fn": 1.0}
    for word in words or []:
        name, _, amount = word.partition("=")
        value = _number(amount)
        if name not in costs or not 0 <= value < float("inf"):
            raise ValueError(f"--cost {word}: write fp=NUMBER or fn=NUMBER, a number >= 0.")
        costs[name] = value
    if not any(costs.values()):
        raise ValueError("--cost: one of fp and fn must be above 0.")
    return costs


def read_priors(words: list[str] | None) -> dict[str, float]:
    found = {}
    for word in words or []:
        name, _, amount = word.rpartition("=")
        share = _number(amount)
        if not 0 <= share <= 1:
            raise ValueError(f"--prior {word}: write a share between 0 and 1, or NAME=SHARE.")
        found[name] = share
    return found


def read_seconds(text: str | None) -> float | None:
    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    seconds = _number(number) * unit
    if not 0 < seconds < float("inf"):
        raise ValueError(f"--budget {text}: write a time such as 60s, 5m or 1h.")
    return seconds


def read_language(text: str) -> str:
    if text not in ("en", "fr"):
        raise ValueError(f"--language {text}: write en or fr.")
    return text


def _number(text: str) -> float:
    """NaN, which lies in no range, for what is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
