"""
A boundary that no sum of terms can draw
========================================

Two spirals, told apart by a kernel model whose zone leaves most rows out.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

from laconic import GrayZoneKernelClassifier

draw = np.random.default_rng(0)
turn = 3 * np.pi * np.sqrt(draw.random(400))
side = draw.integers(0, 2, 400)
angle = turn + np.pi * side
X = np.column_stack([turn * np.cos(angle), turn * np.sin(angle)]) + draw.normal(0, 0.4, (400, 2))
model = GrayZoneKernelClassifier(zone=(0.3, 0.7), gamma=0.5, C=10.0).fit(X, side)

# %%
grid = np.linspace(-12, 12, 120)
plane = np.array([(a, b) for b in grid for a in grid])
_, ax = plt.subplots()
chance = model.predict_proba(plane)[:, 1].reshape(120, 120)
ax.contourf(grid, grid, chance, levels=20, cmap="coolwarm", alpha=0.6)
ax.scatter(*X.T, c=side, cmap="coolwarm", s=8)
ax.scatter(*X[model.support_].T, facecolors="none", edgecolors="black", s=30, label="support")
ax.legend()
