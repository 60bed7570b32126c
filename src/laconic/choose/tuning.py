"""Numbers of the main job that were settled by measurement or by convention, each with its why."""

from __future__ import annotations

PAGE = 300
"""Entries that a reader will look at: about one printed page of tables. By convention."""

FOR_A_PAGE = 1.0
"""Standard errors of cost given up to fit on a page (docs/main_job.md, splits of seeds 0 and 1)."""

FOR_SIZE = 0.1
"""Standard errors of log loss given up to be smaller still (docs/main_job.md, same splits)."""

CHOICE_ROWS = 200_000
"""Rows of a scan that the choice is made on: more of them changed no choice. By convention."""

SHARE_FOR_COMPARISON = 0.7
"""Part of the time budget after which no fold is started: the chosen model must still be fitted."""

RACE_FOLDS = 2
"""Folds after which a candidate that is behind gives up: one fold is too noisy to judge by."""

BEHIND = 1.0
"""Standard errors behind the best at which a candidate gives up. By convention."""

ZONE_WIDTH = 0.5
"""Width of the gray zone around the decision threshold, as a difference of probabilities."""

TREES = 50
"""Trees whose leaves vote in "forest-votes": more took longer and cost the same."""

LANDMARKS = 300
"""Landmarks of the kernel candidate where it has too many rows for all of them."""

MOST_KERNEL_ROWS = 4_000
"""Rows up to which the kernel candidate uses all of them: beyond, its time grows with the cube."""

MOST_RULES_ROWS = 5_000
"""Rows up to which rules are compared unasked: beyond, smooth shapes were always better."""

TILTS = 64
"""Cost matrices that a tailored loss averages over where it has no closed form: the mean of 64 is
within 1 % of that of 4,096 (tests/choose/test_tailored.py)."""

STACK_PENALTY = 8.0
"""Nats of held-out log loss that the other members of a committee must gain to replace its centre:
between 6 and 12 the log loss of new rows was least, on 12 small sets (docs/main_job.md)."""

REACHES = (0.05, 0.07, 0.1)
"""Log-odds within which the terms of a page are drawn: the first at which it fits. At 0.05 pages
are a fifth shorter and no dearer on the halves of docs/main_job.md; beyond 0.1 some were dearer."""
