"""
Gray-zone logistic regression: few examples carry the model
===========================================================

Only probabilities near the threshold decide. Outside the zone the loss is straight, so that rows
far from the decision have no part in the model.
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from laconic import GrayZoneLogisticRegression
from laconic.displays import SupportShareDisplay

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = GrayZoneLogisticRegression(zone=(0.3, 0.7)).fit(X, y)
print("rows with a part:", len(model.support_), "of", len(X))
print("at most this far from the best objective:", model.duality_gap_)

# %%
zones = [(0.0, 1.0), (0.05, 0.95), (0.1, 0.9), (0.2, 0.8), (0.3, 0.7), (0.4, 0.6)]
SupportShareDisplay.from_estimator(GrayZoneLogisticRegression(), X, y, zones).plot()
