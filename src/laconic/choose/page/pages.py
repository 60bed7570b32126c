r"""One page: readable students, their weighted mean, and the choice among them.

Candidates that are sums of terms are weighed against each other as in the committee, shrunk to the
front runner; their mean is one long sum of terms. It is shortened to pages of several lengths, in
every fold anew, and the shortest page is kept that still says what the long sum says. With p the
long sum's probabilities and q the page's, of rows that neither has seen, a page strays by

.. math:: \frac{1}{n} \sum_i \sum_k p_{ik} \log \frac{p_{ik}}{q_{ik}}

nats a row: what it adds to the log loss, if the long sum is right. No label enters, so that a few
hundred rows can tell; their losses cannot. Single candidates are not chosen by their losses: the
best of many small models was lucky more often than good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import entropy

from laconic._typing import Floats, Ints
from laconic.choose.blends import MEAN_LINKS
from laconic.choose.committee import front_of, weighted_mean
from laconic.choose.comparison import Judge, Outcome
from laconic.choose.page.settling import log_probabilities_of
from laconic.choose.page.shortening import Shortening
from laconic.choose.race import Race
from laconic.choose.tuning import PATH
from laconic.core.forms import AdditiveScore, probabilities
from laconic.data.tables.columns import Table

NO_FOLD = (
    "No fold has both classes to learn from, so that no cost can be told; give more rows of the "
    "rarest class."
)


def formed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Complete outcomes whose form can be averaged with others and shortened."""
    able = [out for out in outcomes if out.complete and not out.candidate.decides]
    return [out for out in able if out.link in MEAN_LINKS and out.forms]


def offered_pages(
    pool: Sequence[Outcome], race: Race, tolerance: float
) -> tuple[list[Outcome], Outcome]:
    """Pages of the weighted mean, from long to short, and its front runner."""
    centre = pool[front_of(pool, race.judge)]
    # only scores of one kind have a mean
    pool = [out for out in pool if out.link == centre.link]
    mean = weighted_mean(pool, race.judge, race.rows.folds, forms=True)
    return pages_of(mean, race, tolerance), centre


def pages_of(long: Outcome, race: Race, tolerance: float) -> list[Outcome]:
    """The same form on pages of several lengths, with their held-out probabilities.

    They end where the next one would stray by more than ``tolerance`` times the entropy of the
    classes; the longest is always there.
    """
    if not long.forms:
        raise ValueError(NO_FOLD)
    folds = [_FoldPage.of(form, race, *race.rows.folds[fold]) for fold, form in long.forms.items()]
    drawn = [fold.path for fold in folds]
    longest = max(path.size for path in drawn)
    limits = [max(1.0, np.floor(share * race.max_size)) for share in PATH]
    # of the lengths that change nothing, the shortest stands for all
    limits = [own for own in limits if own < longest] or limits[:1]
    limits = [race.max_size, *limits] if limits[0] < race.max_size else limits
    judge, pages = race.judge, list[Outcome]()
    shares = np.bincount(judge.y, judge.weight) / judge.weight.sum()
    for limit in limits:
        raw, strayed = np.full_like(long.proba, np.nan), np.full(len(judge.y), np.nan)
        for fold in folds:
            fold.fill(limit, raw, strayed)
        seen = np.isfinite(raw[:, 0])
        mean = float(np.average(strayed[seen], weights=judge.weight[seen]))
        # a page that says no number, of cells beyond all others, is far as well
        far = not mean <= tolerance * entropy(shares)
        if pages and far:
            break
        pages.append(judge.price(_page(long, limit, raw, drawn, longest, far=far)))
    return pages


@dataclass(frozen=True)
class _FoldPage:
    """The long form of one fold on its way to shorter ones, and the rows that it has not seen."""

    path: Shortening
    table: Table
    test: Ints
    known: Ints
    said: Floats

    @classmethod
    def of(cls, form: AdditiveScore, race: Race, train: Ints, test: Ints) -> _FoldPage:
        # a class may be absent from the training rows of a fold
        known = np.searchsorted(race.rows.classes, np.asarray(form.classes))
        table = race.rows.training.table
        said = log_probabilities_of(form.score(table[test]))
        return cls(Shortening(form, *race.lesson(train).rows_for(form)), table, test, known, said)

    def fill(self, limit: float, raw: Floats, strayed: Floats) -> None:
        """Write what the page of that length says of its rows and how far it strays."""
        form = self.path.to(limit)
        scores = form.score(self.table[self.test])  # no second copy of the table stays
        raw[self.test] = 0.0
        raw[np.ix_(self.test, self.known)] = probabilities(scores, form.link)
        gap = self.said - log_probabilities_of(scores)
        strayed[self.test] = (np.exp(self.said) * gap).sum(axis=1)


def _page(
    long: Outcome, limit: float, raw: Floats, drawn: list[Shortening], longest: int, *, far: bool
) -> Outcome:
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
        sizes=[float(path.size) for path in drawn],
        variables=[float(len(path.form.columns)) for path in drawn],
        forms={},
        limit=float(limit),
        far=far,
    )


@dataclass(frozen=True)
class PageChoice:
    """Pages to choose from, and the rule, so that it can be repeated on other weights of the rows.

    The first ``plain`` pages are untaught, the others taught; of either the first is the longest,
    and the last the shortest that says what the long sum says.
    """

    pages: tuple[Outcome, ...]
    judge: Judge
    losses: Floats
    costs: Floats
    plain: int = 0

    @classmethod
    def of(cls, pages: Sequence[Outcome], judge: Judge, plain: int = 0) -> PageChoice:
        losses = np.stack([judge.tailored(out) for out in pages], axis=1)
        costs = np.stack([out.row_cost for out in pages], axis=1)
        return cls(tuple(pages), judge, losses, costs, plain or len(pages))

    def pick(self, losses: Sequence[float]) -> int:
        """Place of the page to keep, from the mean loss of each: the shortest.

        Teaching must have helped the longest page on rows that its teacher had not seen.
        """
        taught = self.plain < len(self.pages) and losses[self.plain] < losses[0]
        return (len(self.pages) if taught else self.plain) - 1

    def chosen(self) -> Outcome:
        """The page to keep, by all rows."""
        means = [self.judge.mean(column)[0] for column in self.losses.T]
        return self.pages[self.pick(means)]
