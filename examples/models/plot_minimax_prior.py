"""
Minimax over any model you have
===============================

The least favourable class mix, found over the held-out probabilities of any classifier.
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from laconic.displays import ClassRisksDisplay
from laconic.minimax import MinimaxPriorClassifier

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X[:, :8], y, test_size=0.5, random_state=0)
forest = RandomForestClassifier(50, random_state=0)
model = MinimaxPriorClassifier(forest, cv=3).fit(X, y)
ClassRisksDisplay.from_estimator(
    {"forest": forest.fit(X, y), "minimax over it": model}, X_test, y_test
).plot()
