"""
Sparse rules: a few conditions, and agreements of two
=====================================================
"""

# %%
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from laconic import SparseRulesClassifier

data = load_breast_cancer(as_frame=True)
model = SparseRulesClassifier(random_state=0).fit(data.data, data.target)
listed = model.rules_[0][:12][::-1]
_, ax = plt.subplots(figsize=(9, 4))
ax.barh([rule.text for rule in listed], [rule.weight for rule in listed])
ax.set_xlabel("added to the log-odds of a benign tumour")
ax.figure.tight_layout()
