"""
Ranking: put the riskier first
==============================
"""

# %%
from matplotlib import pyplot as plt
from scipy.stats import kendalltau
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from laconic.convex import PairwiseRanker

X, y = load_diabetes(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
ranker = PairwiseRanker().fit(X, y)
print("Kendall's tau on new rows:", kendalltau(ranker.predict(X_test), y_test).statistic)
_, ax = plt.subplots()
ax.plot(y_test, ranker.predict(X_test), ".")
ax.set(xlabel="progression of the disease", ylabel="score")
print("at most this far from the best objective:", ranker.duality_gap_)
