"""
Sparse additive model: a few curves
===================================

Each column has a curve, some pairs a grid; a group penalty leaves out what held-out rows do not
ask for. The whole model is the drawing below.
"""

# %%
from sklearn.datasets import load_breast_cancer

from laconic import SparseAdditiveClassifier
from laconic.displays import AdditivePathDisplay, TermsDisplay

data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="worst")
model = SparseAdditiveClassifier().fit(X, data.target)
TermsDisplay.from_estimator(model).plot()

# %%
# Held-out loss along the path: how many terms are worth reading.
AdditivePathDisplay.from_estimator(model).plot()

# %%
print(model.duality_gap_, model.objective_)
