"""
The mean of two pages is a page
===============================

Both members are sums of terms, so their mean is one: it is drawn, explained and exported as such.
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from laconic import BlendedClassifier, PlainLogisticRegression, SparseAdditiveClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
members = {"additive": SparseAdditiveClassifier(pairs=0), "line": PlainLogisticRegression(0.1)}
models = {**members, "mean": BlendedClassifier(list(members.values()))}
losses = {n: log_loss(y_test, m.fit(X, y).predict_proba(X_test)) for n, m in models.items()}
_, ax = plt.subplots()
ax.bar(list(losses), list(losses.values()))
ax.set_ylabel("log loss on new rows")
