"""
Minimax: the class mix is unknown
=================================

The rule whose worst class risk is least: its risk is the same line at every class mix, while
every other rule is worse somewhere.
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import MinimaxClassifier
from laconic.displays import BayesRiskDisplay, RobustnessPriceDisplay

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :8]
model = MinimaxClassifier(random_state=0).fit(X, y)
logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
BayesRiskDisplay.from_estimator(model, {"logistic": logistic}, X, y).plot()

# %%
# What safety costs on average, as the box of class mixes grows.
RobustnessPriceDisplay.from_estimator(model, [0.0, 0.25, 0.5, 0.75, 1.0]).plot()
