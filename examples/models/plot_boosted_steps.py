"""
Boosted steps: jumps that smooth shapes round off
=================================================
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

from laconic import SparseAdditiveClassifier
from laconic.boosted import BoostedStepsClassifier

draw = np.random.default_rng(0)
X = draw.uniform(size=(800, 3))
y = draw.random(800) < np.where(X[:, 0] > 0.4, 0.8, 0.15)
grid = np.full((400, 3), 0.5)
grid[:, 0] = np.linspace(0.0, 1.0, 400)
_, ax = plt.subplots(figsize=(7, 4))
for model in (BoostedStepsClassifier(random_state=0), SparseAdditiveClassifier(random_state=0)):
    chance = model.fit(X, y).predict_proba(grid)[:, 1]
    ax.plot(grid[:, 0], chance, label=type(model).__name__)
ax.set_xlabel("first column")
ax.set_ylabel("probability")
ax.legend()
ax.figure.tight_layout()
