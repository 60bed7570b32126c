"""One page: readable students, their weighted mean, and the choice among them.

The page is the stack of those candidates whose forms fit on a page together, shrunk to the front
runner. The front runner alone is kept instead where it is within a tolerance of it and shorter.
Other single candidates are not: the best of many small models was lucky more often than good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from laconic._typing import Floats
from laconic.additive.estimator import SparseAdditiveClassifier
from laconic.choose.blends import MEAN_LINKS
from laconic.choose.candidates import Candidate
from laconic.choose.committee import front_of, weighted_mean
from laconic.choose.comparison import Judge, Outcome
from laconic.choose.race import Folds, Race


def page_sized(outcomes: Sequence[Outcome], max_size: float) -> list[Outcome]:
    """Complete outcomes whose drawn form fits on a page and can be averaged with others."""
    able = [out for out in outcomes if out.complete and not out.candidate.decides]
    return [out for out in able if out.link in MEAN_LINKS and out.page <= max_size]


def composed_page(pool: Sequence[Outcome], judge: Judge, folds: Folds, max_size: float) -> Outcome:
    """The stack of members that fit on one page together: the lightest leaves until they do."""
    pool = list(pool)
    centre = pool[front_of(pool, judge)]
    # only scores of one kind have a mean
    pool = [out for out in pool if out.link == centre.link]
    while True:
        page = weighted_mean(pool, judge, folds, forms=True)
        others = [out for out in page.members if out is not centre]
        if page.page <= max_size or not others:
            return page
        pool = [out for out in pool if out is not others[-1]]


def shorter_additive(out: Outcome, race: Race) -> Outcome:
    """The additive model with as few terms as fit on a page; at least one."""
    model = out.candidate.model
    form = (race.rows.fit(model) if out.fitted is None else out.fitted).form_
    terms = max(1, int(len(form.terms) * race.max_size / max(out.page, 1.0)))
    while True:
        short = SparseAdditiveClassifier(**{**model.get_params(), "max_terms": terms, "pairs": 0})
        found = race.run(Candidate("additive-short", short, own_folds=True), None)
        if found.page <= race.max_size or terms == 1:
            return found
        terms = max(1, min(terms - 1, int(terms * race.max_size / found.page)))


@dataclass(frozen=True)
class PageChoice:
    """Pages to choose from, and the rule, so that it can be repeated on other weights of the rows.

    ``pages`` holds (the weighted mean, the front runner alone), and the same two taught, if any.
    """

    pages: tuple[Outcome, ...]
    judge: Judge
    tolerance: float
    losses: Floats
    costs: Floats

    @classmethod
    def of(cls, pages: Sequence[Outcome], judge: Judge, tolerance: float) -> PageChoice:
        losses = np.stack([judge.tailored(out) for out in pages], axis=1)
        costs = np.stack([out.row_cost for out in pages], axis=1)
        return cls(tuple(pages), judge, tolerance, losses, costs)

    def pick(self, losses: Sequence[float]) -> int:
        """Place of the page to keep, from the mean loss of each.

        Teaching must have helped the front runner on rows that its teacher had not seen.
        """
        if len(self.pages) == 1:
            return 0
        start = 2 if len(self.pages) == 4 and losses[3] < losses[1] else 0
        mean, front = self.pages[start : start + 2]
        short = front.page < mean.page
        near = losses[start + 1] <= (1.0 + self.tolerance) * losses[start]
        return start + 1 if short and near else start

    def chosen(self) -> Outcome:
        """The page to keep, by all rows."""
        means = [self.judge.mean(column)[0] for column in self.losses.T]
        return self.pages[self.pick(means)]


def offered_pages(pool: Sequence[Outcome], race: Race) -> list[Outcome]:
    """The weighted mean of the pool and its front runner."""
    page = composed_page(pool, race.judge, race.rows.folds, race.max_size)
    centre = pool[front_of(pool, race.judge)]
    alone = replace(centre, members=(centre,), weights=(1.0,))
    return [page, alone]
