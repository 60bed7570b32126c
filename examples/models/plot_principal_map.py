"""
A map of rows and columns
=========================
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine

from laconic.convex import PrincipalMap
from laconic.displays import CorrelationCircleDisplay, RowMapDisplay

data = load_wine(as_frame=True)
found = PrincipalMap().fit(data.data)
_, axes = plt.subplots(1, 2, figsize=(11, 5))
RowMapDisplay.from_estimator(found, data.data, data.target).plot(axes[0])
CorrelationCircleDisplay.from_estimator(found).plot(axes[1])
