"""
Gray zone, penalty and threshold by cost
========================================

A missed malignant tumour costs ten false alarms. Zones of several widths around the threshold of
the costs, penalties and thresholds are compared by held-out cost; of those within one standard
error of the best, the one that needs the fewest rows is taken.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from laconic import GrayZoneLogisticRegressionCV

X, y = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(X), 1 - y  # 1: malignant
model = GrayZoneLogisticRegressionCV(costs={"fp": 1, "fn": 10}, selection="1se").fit(X, y)
print("zone", np.round(model.zone_, 3), "C", model.C_, "threshold", round(model.threshold_, 3))
print("rows with a part:", len(model.support_), "of", len(X))

# %%
# What was compared: cost against the share of the rows that carry the model.
tried = model.cv_results_
width = tried["p_max"] - tried["p_min"]
points = plt.scatter(100 * tried["support_share"], tried["mean_cost"], c=width, s=12)
plt.colorbar(points, label="width of the zone")
chosen = model.best_index_
plt.plot(100 * tried["support_share"][chosen], tried["mean_cost"][chosen], "rx", ms=10)
plt.xlabel("rows with a part in the model (%)")
plt.ylabel("held-out cost of a row")
plt.tight_layout()
