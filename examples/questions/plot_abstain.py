"""
May the model say "I don't know"?
=================================

A second look by a person costs 0.6, a false alarm 1, a missed malignant tumour 5. A decision whose
expected cost is higher than that of the second look is handed over.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import DecisionClassifier

X, y = load_breast_cancer(return_X_y=True)
y = np.where(y == 1, "benign", "malignant")
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
base = make_pipeline(StandardScaler(), LogisticRegression())
costs = {"fp": 1, "fn": 5}


def paid(look: float) -> tuple[float, float]:
    """Share of the new rows handed over, and the mean cost of a row with the second looks."""
    model = DecisionClassifier(base, costs, positive="malignant", reject_cost=look)
    said = model.fit(X_fit, y_fit).predict(X_new)
    asked = said == model.reject_label_
    wrong = np.where(y_new == "malignant", 5.0, 1.0) * (said != y_new)
    return float(asked.mean()), float(np.where(asked, look, wrong).mean())


share, cost = paid(0.6)
print(f"handed over: {100 * share:.1f} % of the new rows, mean cost {cost:.4f}")
model = DecisionClassifier(base, costs, positive="malignant").fit(X_fit, y_fit)
wrong = np.where(y_new == "malignant", 5.0, 1.0) * (model.predict(X_new) != y_new)
print(f"never asking: mean cost {wrong.mean():.4f}")

# %%
# The cheaper the second look, the more is handed over.
looks = np.linspace(0.05, 0.85, 17)
shares, found = np.transpose([paid(look) for look in looks])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
left.plot(looks, 100 * shares)
left.set(xlabel="cost of a second look", ylabel="rows handed over (%)")
right.plot(looks, found, label="with second looks")
right.axhline(wrong.mean(), color="grey", ls="--", label="never asking")
right.set(xlabel="cost of a second look", ylabel="mean cost of a row")
right.legend()
figure.tight_layout()
