"""
Scorecard: points to add up
===========================

The columns are cut by MODL where the classes change, every part has points, and the sum is a
logistic regression.
"""

# %%
from sklearn.datasets import load_breast_cancer

from laconic import DecisionClassifier, ScorecardClassifier, to_scorecard
from laconic.displays import TermsDisplay

data = load_breast_cancer(as_frame=True)
y = data.target_names[data.target]
model = ScorecardClassifier().fit(data.data, y)
TermsDisplay.from_estimator(model, range(9), X=data.data).plot()

# %%
# The same with whole points, for paper.
decides = DecisionClassifier(model, {"fp": 1, "fn": 20}, positive="malignant", prefit=True)
print(to_scorecard(decides.fit(None, None), data.data, y).to_markdown())
