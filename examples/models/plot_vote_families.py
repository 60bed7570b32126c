"""
Five ways to weight the same voters
===================================

MinCq, CqBoost, LPBoost, CG-Boost and CB-Boost on the same stumps: how many voters each keeps, and
what it errs on the other half of the rows.
"""

# %%
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from laconic import votes
from laconic.displays import VoteRiskDisplay

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "MinCq": votes.MinCqClassifier(mu=0.05, random_state=0),
    "CqBoost": votes.CqBoostClassifier(mu=0.3, staged=True, random_state=0),
    "LPBoost": votes.LPBoostClassifier(nu=0.1, random_state=0),
    "CGBoost": votes.CGBoostClassifier(C=0.01, random_state=0),
    "CBBoost": votes.CBBoostClassifier(n_rounds=50, random_state=0),
}
rows = []
for name, model in models.items():
    model.fit(X, y)
    rows.append((name, model.n_voters_[0], 1 - model.score(X_test, y_test), model.c_bound_[0]))
table = pd.DataFrame(rows, columns=["vote", "voters", "error on new rows", "C-bound"])
print(table.to_string(index=False))

# %%
VoteRiskDisplay.from_estimator(models["CqBoost"], X_test, y_test).plot()
