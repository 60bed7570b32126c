"""One page: readable students, their weighted mean, and the choice among them.

Candidates that are sums of terms are weighed against each other as in the committee, shrunk to the
front runner; their mean is one long sum of terms. It is shortened to pages of several lengths, in
every fold anew, and the shortest page within a tolerance of the longest is kept. Single candidates
are not chosen by their losses: the best of many small models was lucky more often than good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from laconic._typing import Floats
from laconic.choose.blends import MEAN_LINKS
from laconic.choose.committee import front_of, weighted_mean
from laconic.choose.comparison import Judge, Outcome
from laconic.choose.page.shortening import Shortening, form_size
from laconic.choose.race import Race
from laconic.choose.tuning import DOUBT, PATH
from laconic.core.forms import probabilities


def formed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Complete outcomes whose form can be averaged with others and shortened."""
    able = [out for out in outcomes if out.complete and not out.candidate.decides]
    return [out for out in able if out.link in MEAN_LINKS and out.forms]


def offered_pages(pool: Sequence[Outcome], race: Race) -> tuple[list[Outcome], Outcome]:
    """Pages of the weighted mean, from long to short, and its front runner."""
    centre = pool[front_of(pool, race.judge)]
    # only scores of one kind have a mean
    pool = [out for out in pool if out.link == centre.link]
    mean = weighted_mean(pool, race.judge, race.rows.folds, forms=True)
    return pages_of(mean, race), centre


def pages_of(long: Outcome, race: Race) -> list[Outcome]:
    """The same form on pages of several lengths, with their held-out probabilities."""
    longest = max(form_size(form) for form in long.forms.values())
    limits = [max(1.0, np.floor(share * race.max_size)) for share in PATH]
    # of the lengths that change nothing, the shortest stands for all
    limits = [own for own in limits if own < longest] or limits[:1]
    limits = [race.max_size, *limits] if limits[0] < race.max_size else limits
    raws = [np.full_like(long.proba, np.nan) for _ in limits]
    sizes: list[list[float]] = [[] for _ in limits]
    for fold, form in long.forms.items():
        train, test = race.rows.folds[fold]
        path = Shortening(form, *race.lesson(train).rows_for(form))
        for limit, raw, size in zip(limits, raws, sizes, strict=True):
            form = path.to(limit)
            raw[test] = 0.0  # a class may be absent from the training rows of a fold
            known = np.searchsorted(race.rows.classes, np.asarray(form.classes))
            scores = form.score(race.rows.training.table[test])
            raw[np.ix_(test, known)] = probabilities(scores, form.link)
            size.append(float(form_size(form)))
    return [
        race.judge.price(_page(long, limit, raw, size, longest))
        for limit, raw, size in zip(limits, raws, sizes, strict=True)
    ]


def _page(long: Outcome, limit: float, raw: Floats, sizes: list[float], longest: int) -> Outcome:
    """The outcome of a page; a single candidate that was shortened says so in its name."""
    cut = len(long.members) == 1 and longest > limit
    return replace(
        long,
        candidate=replace(long.candidate, name=f"{long.name}, shortened")
        if cut
        else long.candidate,
        proba=(raw + long.smoothing / raw.shape[1]) / (1.0 + long.smoothing),
        row_cost=np.full(len(raw), np.nan),
        raw=raw,
        sizes=sizes,
        forms={},
        limit=float(limit),
    )


@dataclass(frozen=True)
class PageChoice:
    """Pages to choose from, and the rule, so that it can be repeated on other weights of the rows.

    The first ``plain`` pages are untaught, the others taught; the first of either is the longest.
    ``doubts`` are what a shorter page must be better by: half of the standard error by which its
    loss differs from that of the longest, so that few rows keep long pages.
    """

    pages: tuple[Outcome, ...]
    judge: Judge
    tolerance: float
    losses: Floats
    costs: Floats
    doubts: Floats
    plain: int = 0

    @classmethod
    def of(
        cls, pages: Sequence[Outcome], judge: Judge, tolerance: float, plain: int = 0
    ) -> PageChoice:
        losses = np.stack([judge.tailored(out) for out in pages], axis=1)
        costs = np.stack([out.row_cost for out in pages], axis=1)
        plain = plain or len(pages)
        longest = [0] * plain + [plain] * (len(pages) - plain)
        errors = [judge.paired(losses[:, i], losses[:, j])[1] for i, j in enumerate(longest)]
        doubts = DOUBT * np.array(errors)
        return cls(tuple(pages), judge, tolerance, losses, costs, doubts, plain)

    def pick(self, losses: Sequence[float]) -> int:
        """Place of the page to keep, from the mean loss of each: the shortest near the longest.

        Teaching must have helped the longest page on rows that its teacher had not seen.
        """
        own = range(self.plain)
        if self.plain < len(self.pages) and losses[self.plain] < losses[0]:
            own = range(self.plain, len(self.pages))
        near = (1.0 + self.tolerance) * losses[own[0]]
        able = [i for i in own if i == own[0] or losses[i] + self.doubts[i] <= near]
        return min(able, key=lambda i: (self.pages[i].limit, losses[i]))

    def chosen(self) -> Outcome:
        """The page to keep, by all rows."""
        means = [self.judge.mean(column)[0] for column in self.losses.T]
        return self.pages[self.pick(means)]
