"""
Regression that a few wild rows do not bend
===========================================
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

from laconic.convex import ConvexRiskRegressor

draw = np.random.default_rng(0)
x = np.sort(draw.uniform(0, 10, 80))
y = 2 + 0.5 * x + draw.normal(0, 0.4, 80)
y[-6:] -= 8
_, ax = plt.subplots()
ax.plot(x, y, ".", color="grey")
for loss in ("squared", "huber", "absolute"):
    model = ConvexRiskRegressor(loss, 10.0).fit(x[:, None], y)
    ax.plot(x, model.predict(x[:, None]), label=f"{loss}, gap {model.duality_gap_:.1e}")
ax.legend()
