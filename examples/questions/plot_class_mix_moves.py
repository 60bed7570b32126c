"""
The share of positives has moved: what now?
===========================================

A model fitted where 40 % of the rows are positive is used where 5 % are, and nobody knows the new
share. Unlabelled rows tell it, with an interval, and the decisions follow.
"""

# %%
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import DecisionClassifier, estimate_prior, expected_cost
from laconic.displays import PriorRiskDisplay

X, y = load_breast_cancer(return_X_y=True)
y = 1 - y  # 1: malignant
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.6, stratify=y, random_state=0)
draw = np.random.default_rng(0)
mixed = np.concatenate(
    [draw.choice(np.flatnonzero(y_new == 1), 12), draw.choice(np.flatnonzero(y_new == 0), 228)]
)
costs = {"fp": 1, "fn": 5}
base = make_pipeline(StandardScaler(), LogisticRegression())
before = DecisionClassifier(base, costs, positive=1).fit(X_fit, y_fit)

# %%
# The share of each class among the new rows, from their scores alone.
found = estimate_prior(before.predict_proba(X_new[mixed]), before.train_prior_)
share = found.point[1]
print(share, "where", y_new[mixed].mean(), "are positive")

# %%
# The same model with decisions for that mix.
after = DecisionClassifier(base, costs, prior=share, positive=1).fit(X_fit, y_fit)
for name, model in {"before": before, "after": after}.items():
    cost = expected_cost(y_new[mixed], model.predict(X_new[mixed]), costs, positive=1)
    print(name, round(model.threshold_, 3), cost)

# %%
# Cost of both rules, had the mix moved to any other share.
rules = {"before": before.predict(X_new), "after": after.predict(X_new)}
PriorRiskDisplay.from_predictions(y_new, rules, costs, positive=1).plot()
