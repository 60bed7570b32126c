"""
Majority votes: a short list of rules, with a bound
===================================================

CqBoost minimises the second moment of the margin at a given mean: voters enter one by one, and
the C-bound says how wrong the vote can be.
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from laconic import CqBoostClassifier
from laconic.displays import VoteCurveDisplay, VoteRulesDisplay

data = load_breast_cancer(as_frame=True)
X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=0.5, random_state=0)
model = CqBoostClassifier(mu=0.3, staged=True, random_state=0).fit(X, y)
VoteCurveDisplay.from_estimator(model, X, y, X_test, y_test).plot()

# %%
VoteRulesDisplay.from_estimator(model, max_rules=10).plot()
