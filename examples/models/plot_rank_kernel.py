"""
A kernel model of a table as it comes
=====================================

Numbers become the normal quantiles of their ranks, so that a long tail does no harm; categories
and missing cells have features of their own. Two columns matter only together here, which no sum of
columns can say.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from laconic import PlainLogisticRegression
from laconic.kernel import RankKernelClassifier

draw = np.random.default_rng(0)
table = pd.DataFrame(
    {
        "income": np.exp(draw.normal(10.0, 1.0, 600)),
        "debt": np.exp(draw.normal(9.0, 1.5, 600)),
        "branch": draw.choice(["north", "south", None], 600),
    }
)
rich, indebted = table["income"] > np.exp(10.0), table["debt"] > np.exp(9.0)
y = np.where((rich != indebted) ^ (draw.random(600) < 0.05), "refused", "granted")
train, test = np.arange(400), np.arange(400, 600)
model = RankKernelClassifier().fit(table.iloc[train], y[train])
plain = PlainLogisticRegression().fit(table.iloc[train], y[train])
for name, own in {"kernel": model, "logistic regression": plain}.items():
    print(f"{name}: {own.score(table.iloc[test], y[test]):.3f} of the new rows right")
print("at most this far from the best objective:", model.duality_gap_)

# %%
# The probability of a refusal over the two columns, and the new rows.
income, debt = np.meshgrid(np.geomspace(4e2, 5e5, 60), np.geomspace(5e1, 1e6, 60))
grid = pd.DataFrame({"income": income.ravel(), "debt": debt.ravel(), "branch": "north"})
refused = model.predict_proba(grid)[:, list(model.classes_).index("refused")]
levels = plt.contourf(income, debt, refused.reshape(income.shape), np.linspace(0, 1, 11), alpha=0.6)
plt.colorbar(levels, label="probability of a refusal")
for label, mark in {"refused": "x", "granted": "o"}.items():
    own = table.iloc[test][y[test] == label]
    plt.plot(own["income"], own["debt"], mark, ms=3, color="black", label=label)
plt.xscale("log")
plt.yscale("log")
plt.xlabel("income")
plt.ylabel("debt")
plt.legend()
plt.tight_layout()
