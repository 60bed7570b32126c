"""
One certified solver for every convex loss
==========================================

The same rows under five losses: value, gap, steps.
"""

# %%
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from laconic import ConvexRiskClassifier

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
rows = []
for loss in ("logistic", "hinge", "squared_hinge", "squared", "exponential"):
    model = ConvexRiskClassifier(loss).fit(X, y)
    rows.append((loss, model.objective_, model.duality_gap_, model.n_iter_, model.score(X, y)))
table = pd.DataFrame(rows, columns=["loss", "objective", "gap", "steps", "accuracy"])
print(table.to_string(index=False))

# %%
_, ax = plt.subplots()
ax.bar(table["loss"], table["accuracy"])
ax.set(ylim=(0.9, 1), ylabel="accuracy on the training rows")
