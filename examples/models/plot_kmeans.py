"""
How many groups?
================

Distortion always falls with the number of groups; the criterion says where to stop.
"""

# %%
from sklearn.datasets import load_iris

from laconic.convex import KMeansK
from laconic.displays import KPathDisplay

X = load_iris().data
groups = KMeansK(k_max=8, random_state=0).fit(X)
KPathDisplay.from_estimator(groups).plot()
