"""Sparse rules on two sets that no sum of columns can learn: errors on the other half of them."""

from __future__ import annotations

import time

import numpy as np
from sklearn.model_selection import train_test_split

from laconic import SparseRulesClassifier
from laconic.data.datasets import load

SEEDS = (0, 1, 4)


def main() -> None:
    print("| set | rows | test rows | errors, seeds 0, 1, 4 | rules | CPU s |")
    print("|---|---|---|---|---|---|")
    SparseRulesClassifier().fit(np.arange(80.0).reshape(40, 2), np.arange(40) % 2)  # compiles
    for name in ("monks2", "tictactoe"):
        data = load(name)
        errors, rules, seconds = [], [], []
        for seed in SEEDS:
            X, X_test, y, y_test = train_test_split(
                data.X, data.y, test_size=0.5, stratify=data.y, random_state=seed
            )
            start = time.process_time()
            model = SparseRulesClassifier(random_state=0).fit(X, y)
            seconds.append(time.process_time() - start)
            errors.append(int(np.sum(model.predict(X_test) != y_test)))
            rules.append(len(model.rules_[0]))
        print(
            f"| {name} | {len(data.y)} | {len(y_test)} | {', '.join(map(str, errors))} "
            f"| {', '.join(map(str, rules))} | {np.mean(seconds):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
