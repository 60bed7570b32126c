"""
Why was this row decided so?
============================

Every model that is a sum of terms explains a row exactly: the contributions add up to its score.
"""

# %%
from sklearn.datasets import load_breast_cancer

from laconic import SparseAdditiveClassifier
from laconic.displays import ContributionDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
model = SparseAdditiveClassifier(max_terms=8).fit(X[:400], y[:400])
ContributionDisplay.from_estimator(model, X, row=500).plot()

# %%
# The same as a table with named columns.
model.explain(X.iloc[500:503])
