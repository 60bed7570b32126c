"""
Optimal scorecard: the best small table of points, with a proof
===============================================================

Three conditions with whole points, and a certificate: how far from the best of all such cards this
one can be.
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from laconic.scorecard import OptimalScorecardClassifier

data = load_breast_cancer(as_frame=True)
X, y = (
    data.data.filter(regex="mean (radius|texture|smoothness|concavity|symmetry)"),
    data.target_names[data.target],
)
model = OptimalScorecardClassifier(3, points=(-5, 5), max_cuts=4, gap=0.02).fit(X, y)
print(model.card_)
print("no card of these conditions loses less by more than", f"{model.optimality_gap_:.1%}")

# %%
# Conditions and their points.
card = model.card_
_, ax = plt.subplots(figsize=(8, 3))
ax.barh([item.text for item in card.items], [item.points for item in card.items])
ax.set_xlabel("points")
ax.figure.tight_layout()
