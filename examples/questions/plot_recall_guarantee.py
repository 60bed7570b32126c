"""
Can I be sure to catch 90 % of the cases?
=========================================

A threshold tuned on some rows catches less on the next ones half of the time. A guarantee takes
the threshold from rows that chose nothing, by an exact binomial bound: with 95 % confidence over
the draw of those rows, recall on new ones is at least what was asked.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from laconic import DecisionClassifier

X, y = make_classification(
    40_000, 10, n_informative=5, weights=[0.9], class_sep=0.8, flip_y=0.0, random_state=0
)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
plain, promised = [], []
for seed in range(25):
    some = np.random.default_rng(seed).choice(len(X_fit), 2000, replace=False)
    model = DecisionClassifier(
        LogisticRegression(), {"fp": 1, "fn": 5}, positive=1, guarantee="recall>=0.90"
    )
    model.fit(X_fit[some], y_fit[some])
    promised.append(model.predict(X_new)[y_new == 1].mean())
    fit, tune = some[:1500], some[1500:]
    base = LogisticRegression().fit(X_fit[fit], y_fit[fit])
    cut = np.quantile(base.predict_proba(X_fit[tune])[y_fit[tune] == 1, 1], 0.10)
    plain.append((base.predict_proba(X_new)[y_new == 1, 1] >= cut).mean())

# %%
# Share of positives caught on 2,000 new ones, for 25 draws of the training rows.
_, ax = plt.subplots()
ax.plot(np.sort(plain), "o", label="threshold at the 10 % quantile")
ax.plot(np.sort(promised), "o", label="guarantee, 95 % confidence")
ax.axhline(0.9, color="grey", linewidth=1)
ax.set(xlabel="draw, sorted", ylabel="recall on new rows")
ax.legend()

# %%
print("below 0.90:", np.mean(np.array(plain) < 0.9), np.mean(np.array(promised) < 0.9))
