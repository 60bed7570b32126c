"""The summary in sentences and tables of texts, shared by the page, Markdown and the terminal."""

from __future__ import annotations

import math
from typing import Any

from laconic.data.tables.spoken import LEAST_SHOWN
from laconic.reporting.names import family_name, in_language, note_text
from laconic.reporting.words import Numbers, clipped, words

_SHOWN_CLASSES = 12
MANY_CLASSES = 8
"""Classes from which a table of truth by decision is a list of what each is taken for."""


def best_constant(summary: dict[str, Any]) -> str:
    """The cheapest rule that always decides one class, of those that keep what is promised."""
    baselines = summary["baselines"]
    always = [key for key in baselines if key.startswith("always ")]
    kept = [key for key in always if keeps_promises(summary, key)]
    return str(min(kept or always, key=lambda key: baselines[key]))


def keeps_promises(summary: dict[str, Any], rule: str) -> bool:
    """Whether a rule that always decides one class keeps what is promised of each class."""
    for one in summary.get("certificates", ()):
        if one["kind"] != "promise":
            continue
        measure, level, own = one["measure"], one["level"], rule == f"always {one['name']}"
        if measure == "recall" and level > 0 and not own:
            return False
        if measure in ("alarms", "false_alarms") and level < 1 and own:
            return False
    return True


def claims_better(summary: dict[str, Any]) -> bool:
    """Whether the verdict is that the model costs less than the best rule without one."""
    best = best_constant(summary)
    _, low, high = summary["alternatives"][best]
    return summary["expected_cost"] < summary["baselines"][best] and not low <= 0 <= high


class Sentences:
    """What the faces of a report say, in one language."""

    def __init__(self, summary: dict[str, Any], language: str = "en") -> None:
        self.summary = in_language(summary, language)
        self.numbers = Numbers(language)
        self.language = language
        self.volume: dict[str, Any] = summary.get("volume") or {}
        self.cases: float | None = self.volume.get("cases")
        known = words(language)
        per = known["per_thousand" if self.cases is None else f"per_{self.volume['period']}"]
        self.words = {key: text.replace("{per}", per) for key, text in known.items()}

    @property
    def scale(self) -> float:
        """From counts in 1,000 cases to those of the period."""
        return 1.0 if self.cases is None else self.cases / 1000.0

    def money(self, value: float) -> str:
        """A cost of the whole period."""
        text = self.numbers.whole(value) if abs(value) >= 100 else self.numbers.fixed(value, 2)
        return self._in_currency(text)

    def cost(self, value: float) -> str:
        """A cost per case."""
        return self._in_currency(self.numbers.cost(value))

    def _in_currency(self, text: str) -> str:
        unit = self.volume.get("currency")
        return text if unit is None else f"{text}\u00a0{unit}"

    @property
    def colon(self) -> str:
        return "\u00a0:" if self.language == "fr" else ":"

    def family(self) -> str:
        return family_name(self.summary["model"]["family"], self.language)

    def say(self, key: str, **values: Any) -> str:
        return self.words[key].format(**values)

    def quoted(self, name: Any) -> str:
        return self.say("always", name=clipped(name, 40))

    def measured(self) -> str:
        rows = self.summary["rows"]
        test = self.numbers.whole(rows["test"])
        if rows["train"] is None:
            return self.say("measured_given", test=test)
        return self.say("measured_held_out", test=test, train=self.numbers.whole(rows["train"]))

    def at_prior(self) -> str | None:
        prior = self.summary["prior"]
        return None if prior is None else self.say("at_prior", mix=self.shares(prior))

    def shares(self, values: list[float]) -> str:
        pairs = zip(self.summary["classes"][:_SHOWN_CLASSES], values, strict=False)
        texts = [f"{clipped(name, 30)} {self.numbers.percent(share)}" for name, share in pairs]
        return ", ".join(texts) + (" …" if len(values) > _SHOWN_CLASSES else "")

    def rules(self) -> list[tuple[str, float]]:
        """This model and the rules without one; of those for many classes the cheapest."""
        found = [(self.words["this_model"], self.summary["expected_cost"])]
        best = best_constant(self.summary)
        few = len(self.summary["classes"]) <= MANY_CLASSES
        return found + [
            (self._baseline_name(key), cost)
            for key, cost in self.summary["baselines"].items()
            if few or key == best or not key.startswith("always ")
        ]

    def _baseline_name(self, key: str) -> str:
        if key == "the likeliest class":
            return self.words["likeliest"]
        if key == "plain model":
            return self.other_name()
        return self.quoted(key.removeprefix("always "))

    def other_name(self) -> str:
        """The model that was handed over to compare with."""
        name = self.summary.get("baseline_name")
        if name is None:
            return self.words["plain"]
        return clipped(family_name(name, self.language), 40)

    def verdict(self) -> str:
        cost = self.summary["expected_cost"]
        best = best_constant(self.summary)
        constant = self.summary["baselines"][best]
        _, low, high = self.summary["alternatives"][best]
        values = {
            "cost": self.cost(cost),
            "other": self.cost(constant),
            "rule": self._baseline_name(best),
            "kept": self._kept_by(best),
        }
        if low <= 0 <= high:
            text = self.say("verdict_unclear", **values)
        elif cost == 0 and claims_better(self.summary):  # on these rows, and not in the long run
            values["high"] = self._in_currency(
                self.numbers.rough(self.summary["expected_cost_high"])
            )
            least = self.numbers.percent(-high / constant)
            text = self.say("verdict_no_error", percent=least, **values)
        elif claims_better(self.summary):
            saved = 1.0 - cost / constant
            text = self.say("verdict_better", percent=self.numbers.percent(saved), **values)
        else:
            broken = self._promised and not keeps_promises(self.summary, best)
            text = self.say("verdict_free" if broken else "verdict_worse", **values)
        if self.cases is not None:
            key = "verdict_money" if cost < constant and not low <= 0 <= high else ""
            text += " " + self.say(
                key or "verdict_money_only",
                cases=self.numbers.whole(self.cases),
                money=self.money(cost * self.cases),
                saved=self.money((constant - cost) * self.cases),
                rule=self._baseline_name(best),
            )
        return text + self._beside_the_plain_one() + self._beside_the_champion()

    def _kept_by(self, rule: str) -> str:
        if not self._promised:
            return ""
        return self.words["that_keeps" if keeps_promises(self.summary, rule) else "keeps_none"]

    @property
    def _promised(self) -> bool:
        return any(entry["kind"] == "promise" for entry in self.summary["certificates"])

    def scenarios(self) -> dict[str, Any] | None:
        """Heads and rows of the table of other costs, where the fit was given some."""
        given = self.summary.get("scenarios")
        if not given:
            return None
        words, numbers = self.words, self.numbers
        name = clipped(self.summary["positive"], 30)
        heads = [words["t_scenario"], words["t_threshold"], words["t_cost"]]
        heads += [self.say("t_positive", name=name), words["t_usual"]]
        rows = [
            [
                clipped(one["name"], 40),
                "" if one["threshold"] is None else numbers.percent(one["threshold"]),
                numbers.cost(one["cost"]),
                numbers.percent(one["decided"]),
                numbers.cost(one["cost_of_usual"]),
            ]
            for one in given
        ]
        return {"heads": heads, "rows": rows}

    def _beside_the_champion(self) -> str:
        """The model in use, by the rows that judge both or by the folds of the comparison."""
        found = self.summary.get("champion")
        if found is None:
            return ""
        own, name = found["cost"] + found["more"][0], clipped(found["name"], 40)
        return self._beside(*found["more"], cost=own, name=name, key="champion")

    def price(self) -> str | None:
        """What it costs that the model can be read, where all the candidates were compared."""
        found = self.summary.get("price")
        if found is None:
            return None
        ends = {key: self.numbers.rough(found[key]) for key in ("value", "low", "high")}
        ends |= {key: self._in_currency(ends[key]) for key in ("value", "high")}
        ends["less"] = self._in_currency(self.numbers.rough(abs(found["low"])))
        return self.say("price_some" if found["low"] > 0 else "price_none", **ends)

    def _beside_the_plain_one(self) -> str:
        """The best simple model beside this one, with the chance in their difference."""
        if "plain model" not in self.summary["alternatives"]:
            return ""
        ends = self.summary["alternatives"]["plain model"]
        return self._beside(*ends, cost=self.summary["expected_cost"], name=self.other_name())

    def _beside(
        self, more: float, low: float, high: float, *, cost: float, name: str, key: str = "beside"
    ) -> str:
        """``cost`` is that of this model, ``more`` what it costs more than the one called name."""
        worse = "_free" if self._promised else "_worse"  # who keeps a promise pays for it
        key += "_even" if low <= 0 <= high else "_better" if more < 0 else worse
        share = abs(more) / (cost - more) if cost > more else 0.0
        values = {
            "name": name,
            "other": self.cost(cost - more),
            "percent": self.numbers.percent(share),
            "low": self.numbers.rough(low),
            "high": self._in_currency(self.numbers.rough(high)),
            "less": self._in_currency(self.numbers.rough(abs(low))),
            "more": self._in_currency(self.numbers.rough(abs(high))),
        }
        return " " + self.say(key, **values)

    def cards(self) -> list[dict[str, Any]]:
        """The few numbers that come first: key, label, value, its text and a note."""
        summary, numbers = self.summary, self.numbers
        positive = clipped(summary["positive"], 28)
        place = summary["classes"].index(summary["positive"])
        cost = summary["expected_cost"]
        ends = {end: numbers.rough(summary[f"expected_cost_{end}"]) for end in ("low", "high")}
        found = [
            self._card("cost", self.words["card_cost"], cost, self.cost(cost))
            | {"note": self.say("between", **ends)}
        ]
        if self.cases is not None:
            limits = [summary[f"expected_cost_{end}"] * self.cases for end in ("low", "high")]
            note = self.say("between", low=self.money(limits[0]), high=self.money(limits[1]))
            label, paid = self.words["card_money"], cost * self.cases
            found = [self._card("money", label, paid, self.money(paid)) | {"note": note}]
        for key in ("caught", "precision"):
            if summary.get(key) is not None:
                share, low, high = summary[key]
                note = self.say("between", low=numbers.percent(low), high=numbers.percent(high))
                label = self.say(f"card_{key}", name=positive)
                found.append(self._card(key, label, share, numbers.percent(share)) | {"note": note})
        decided = summary["decisions_per_1000"][place]
        label = self.say("card_decided", name=positive)
        found.append(self._card("decided", label, decided, self._count(decided)))
        if summary["threshold"] is not None:
            label = self.say("card_threshold", name=positive)
            threshold = summary["threshold"]
            found.append(self._card("threshold", label, threshold, numbers.percent(threshold)))
        if any(summary["abstentions"]):
            left = summary["abstentions_per_1000"]
            label = self.words["card_abstained"]
            found.append(self._card("abstained", label, left, self._count(left)))
        size = summary.get("model", {}).get("size")
        if size is not None and size["count"] is not None:
            label = self.words[f"card_{size['unit']}"]
            found.append(self._card("size", label, size["count"], numbers.whole(size["count"])))
        return found

    def measures(self) -> list[dict[str, Any]]:
        """Numbers that only specialists ask for."""
        return [
            self._card(key, self.words[f"card_{key}"], value, self.numbers.short(value))
            for key in ("auc", "log_loss")
            if (value := self.summary[key]) is not None
        ]

    def _count(self, per_thousand: float) -> str:
        """Cases in 1,000, or in the period."""
        count = per_thousand * self.scale
        return self.numbers.fixed(count, 0 if self.cases is not None and count >= 20 else 1)

    @staticmethod
    def _card(key: str, label: str, value: float, text: str) -> dict[str, Any]:
        return {"key": key, "label": label, "value": repr(value), "text": text, "note": None}

    def proofs(self) -> list[dict[str, str]]:
        """Certificates: a title, what is certain, and what that assumes."""
        return [self._proof(entry) for entry in self.summary["certificates"]]

    def _proof(self, entry: dict[str, Any]) -> dict[str, str]:
        kind, number = entry["kind"], self.numbers
        if kind == "given":
            return {key: str(entry.get(key, "")) for key in ("title", "says", "assumes")}
        if kind == "promise":
            return self._promise(entry)
        values: dict[str, Any] = {}
        shown = self.cost if kind == "measured" else number.proven
        for key in ("value", "low", "high", "gap"):
            if entry.get(key) is not None:
                values[key] = shown(entry[key])
        sentence = f"{kind}_s"
        if kind == "page":
            values["value"] = self._about(entry["value"])
        if kind == "measured":
            values["rows"] = number.whole(entry["rows"])
        elif kind == "gap":
            scale = entry["objective"]
            values["of"] = (
                "" if scale is None else self.say("gap_of", objective=number.short(scale))
            )
        elif kind in ("pac_bayes", "c_bound", "compression"):
            values["value"] = number.percent(entry["value"])
            values["name"] = entry.get("name")
            sentence = "pac_bayes_each" if entry.get("each_class") else sentence
        elif kind == "minimax":
            values["prior"] = self.shares(entry["prior"])
        elif kind == "held_out_risks":
            pairs = zip(self.summary["classes"][:_SHOWN_CLASSES], entry["risks"], strict=False)
            values["risks"] = ", ".join(f"{clipped(c, 30)} {number.short(r)}" for c, r in pairs)
        assumption = str(entry.get("assumption", ""))
        if assumption and self.language != "en":  # it is handed over in English
            assumption = self.say("see_bound", name=entry.get("name"))
        elif assumption:
            assumption = assumption[0].upper() + assumption[1:].rstrip(".") + "."
        return {
            "title": self.words[f"{kind}_t"],
            "says": self.say(sentence, **values),
            "assumes": self.say(f"{kind}_a", assumption=assumption).strip(),
        }

    def _about(self, value: float) -> str:
        """What is measured and hardly there."""
        said = self.numbers.proven(value)
        return said if value >= LEAST_SHOWN else self.say("below", value=said)

    def _promise(self, entry: dict[str, Any]) -> dict[str, str]:
        number, measure = self.numbers, entry["measure"]
        shown = number.cost if measure == "cost" else number.percent
        at_least = measure in ("recall", "precision")
        says = self.say(
            "promise_s",
            confidence=number.percent(entry["confidence"]),
            what=self.say(f"promise_{measure}", name=clipped(entry["name"], 40)),
            sense=self.words["at_least" if at_least else "at_most"],
            level=shown(entry["level"]),
        )
        if entry["measured"] is not None:
            rows, seen = number.whole(entry["rows"]), shown(entry["measured"])
            says += " " + self.say("promise_seen", rows=rows, measured=seen)
        low, high = entry.get("shares") or (0.0, 1.0)
        mix = self.say(
            f"promise_mix_{entry['mix']}", low=number.percent(low), high=number.percent(high)
        )
        assumes = f"{self.words['promise_a']} {mix}"
        return {"title": self.words["promise_t"], "says": says, "assumes": assumes}

    def model_lead(self) -> str:
        model, whole = self.summary["model"], self.numbers.whole
        family = self.family()
        family = family[:1].upper() + family[1:]
        if model["kind"] == "additive":
            text = self.say(
                "model_additive",
                family=family,
                terms=whole(model["n_terms"]),
                columns=whole(model["n_columns"]),
                rows=whole(model["described_rows"]),
            )
            if model["form"] is None:
                return f"{text} {self.words['model_large']}"
            if len(model["form"]["intercept"]) > 1:
                return f"{text} {self.words['score_of_each']}"
            positive = clipped(self.summary["positive"], 40)
            return f"{text} {self.say('score_of', name=positive)}"
        if model["kind"] == "rules":
            return self.say("model_rules", family=family, rules=whole(model["n_rules"]))
        if model["kind"] == "profiles":
            return self.say("model_profiles", family=family, profiles=whole(model["n_profiles"]))
        return self.say("model_other", family=family)

    def paper_card(self) -> dict[str, Any] | None:
        """A card of whole points as a form to print, in words."""
        card, number, w = self.summary["model"].get("card"), self.numbers, self.words
        if card is None:
            return None
        lines = []
        for one in card["lines"]:
            part, points = one["part"], f"{one['points']:+d}".replace("-", "\u2212")
            said = w[part[1:]] if part[:1] == "\0" else part
            lines.append([clipped(one["column"], 60), clipped(said, 120), points])
        totals = [
            [
                str(one["total"]).replace("-", "\u2212"),
                number.percent(one["risk"]),
                number.whole(one["rows"]),
                number.whole(one["hits"]),
                f"{number.percent(one['low'])} \u2013 {number.percent(one['high'])}"
                if one["rows"]
                else "",
            ]
            for one in card["totals"]
        ]
        name = clipped(self.summary["positive"], 40)
        said = [self.say("card_lead", name=name)]
        if card["between"] is not None:
            below, above = card["between"]
            sure = 1.0 if self.summary["threshold"] is None else self.summary["threshold"]
            first = next(t for t, p in card["risks"] if t > below and (p >= sure or t == above))
            total = str(first).replace("-", "\u2212")
            said.append(self.say("card_from", name=name, total=total))
        if card["doubling"] is not None:
            points = number.short(card["doubling"])
            said.append(self.say("card_doubling", name=name, points=points))
        return {
            "lead": " ".join(said),
            "lines": lines,
            "totals": totals,
            "risk": self.say("card_risk", name=name),
        }

    def listing(self) -> dict[str, Any] | None:
        """The model as a table, when it is one: rules, profiles, or parts too many to draw."""
        model, number, w = self.summary["model"], self.numbers, self.words
        if model["kind"] == "profiles":
            heads = [w["t_profile"], w["t_rows"], w["t_decides"]]
            rows = [
                [
                    clipped("; ".join(one["name"]), 160),
                    number.percent(one["mass"]),
                    self._decided(one["decides"]),
                ]
                for one in model["profiles"]
            ]
            return {"heads": heads, "rows": rows}
        if model["kind"] == "rules":
            rows = [[clipped(text, 160), number.short(weight)] for weight, text in model["rules"]]
            return {"heads": [w["t_says"], w["t_weight"]], "rows": rows}
        if model["kind"] == "additive" and model["form"] is None:
            rows = [[clipped(name, 120), number.short(size)] for name, size in model["importance"]]
            return {"heads": [w["t_part"], w["effect"].format(value="").strip()], "rows": rows}
        return None

    def _decided(self, chances: list[float]) -> str:
        classes = self.summary["classes"]
        likely = [(chance, k) for k, chance in enumerate(chances) if chance > 1e-9]
        if len(likely) == 1:
            return clipped(classes[likely[0][1]], 40)
        return ", ".join(
            f"{clipped(classes[k], 30)} {self.numbers.percent(chance)}"
            for chance, k in sorted(likely, reverse=True)
        )

    def candidates(self) -> dict[str, Any] | None:
        """The candidates that were compared, as heads and rows of texts."""
        table = self.summary["comparison"]
        if table is None:
            return None
        wanted = [
            ("candidate", "t_candidate"),
            ("cost", "t_cost"),
            ("size", "t_size"),
            ("worst_class_risk", "t_worst_risk"),
            ("log_loss", "t_log_loss"),
            ("auc", "t_auc"),
            ("fit_seconds", "t_seconds"),
            ("certificate", "t_certificate"),
            ("note", "t_note"),
        ]
        kept = [(column, head) for column, head in wanted if column in table]
        chosen = table.get("chosen", [False] * len(table["candidate"]))
        costs = [math.inf if cost is None else cost for cost in table["cost"]]
        order = sorted(range(len(costs)), key=costs.__getitem__)
        return {
            "heads": [self.words[head] for _, head in kept],
            "rows": [
                {
                    "chosen": bool(chosen[r]),
                    "cells": [self._cell(table[column][r], column) for column, _ in kept],
                }
                for r in order
            ],
        }

    def _cell(self, value: Any, column: str) -> str:
        if value is None:
            return "–"  # noqa: RUF001
        if column == "note":
            return clipped(note_text(str(value), self.language), 120)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return clipped(value, 80)
        if column == "size":
            return self.numbers.whole(value)
        if column == "certificate":
            return ("< " if 0 < value < LEAST_SHOWN else "") + self.numbers.proven(value)
        return self.numbers.short(value) if column == "fit_seconds" else self.numbers.cost(value)

    def counts(self) -> dict[str, Any]:
        """Truth by decision, with the share decided right."""
        summary = self.summary
        heads = [clipped(name, 40) for name in summary["classes"]]
        abstains = any(summary["abstentions"])
        rows: list[dict[str, Any]] = []
        for k, counts in enumerate(summary["confusion"]):
            cells = counts + ([summary["abstentions"][k]] if abstains else [])
            total = sum(cells) if abstains else sum(counts)
            right = self.numbers.percent(counts[k] / total) if total else "–"  # noqa: RUF001
            rows.append(
                {
                    "name": heads[k],
                    "cells": [self.numbers.whole(count) for count in cells],
                    "right": k,
                    "recall": right,
                }
            )
        if len(heads) > MANY_CLASSES:
            return self._errors_by_class(heads, [row["recall"] for row in rows])
        return {
            "first": self.words["truth_decision"],
            "heads": heads + ([self.words["abstained"]] if abstains else []),
            "rows": rows,
        }

    def _errors_by_class(self, names: list[str], right: list[str]) -> dict[str, Any]:
        """For many classes: the rows of each, and what it is most often taken for."""
        rows = []
        for k, counts in enumerate(self.summary["confusion"]):
            taken = {d: n for d, n in enumerate(counts) if n and d != k}
            most = sorted(taken, key=lambda d: (-taken[d], d))[:2]
            for_ = ", ".join(f"{names[d]} ({self.numbers.whole(taken[d])})" for d in most)
            total = sum(counts) + self.summary["abstentions"][k]
            cells = [self.numbers.whole(total), for_]
            rows.append({"name": names[k], "cells": cells, "right": -1, "recall": right[k]})
        heads = [self.words["t_rows"], self.words["taken_for"]]
        return {"first": self.words["t_class"], "heads": heads, "rows": rows}
