"""
Three classes and a matrix of costs
===================================

Wines of three growers. Taking a wine of the third grower for one of the first is the error to
avoid; a cost matrix says so, truth by truth and decision by decision.
"""

# %%
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from laconic import DecisionClassifier, SparseAdditiveClassifier, expected_cost
from laconic.displays import ClassRisksDisplay

data = load_wine(as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(
    data.data, data.target, test_size=0.5, stratify=data.target, random_state=1
)
costs = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [20.0, 2.0, 0.0]])
model = DecisionClassifier(SparseAdditiveClassifier(pairs=0), costs).fit(X_train, y_train)
print(expected_cost(y_test, model.predict(X_test), costs))

# %%
ClassRisksDisplay.from_estimator(model, X_test, y_test, costs).plot()
