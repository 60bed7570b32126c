"""
Weighted naive Bayes: few variables, any time budget
====================================================

Each partitioned column enters with a weight between 0 and 1; the penalty makes most of them 0.
"""

# %%
from sklearn.datasets import load_breast_cancer

from laconic import WeightedNaiveBayes
from laconic.displays import ContributionDisplay, SearchDisplay

data = load_breast_cancer(as_frame=True)
model = WeightedNaiveBayes(random_state=0).fit(data.data, data.target)
print("kept:", len(model.selected_features_), "of", data.data.shape[1])

# %%
# The criterion along the searches of the paper.
SearchDisplay.from_estimator(WeightedNaiveBayes(random_state=0), data.data, data.target).plot()

# %%
ContributionDisplay.from_estimator(model, data.data, row=0).plot()
