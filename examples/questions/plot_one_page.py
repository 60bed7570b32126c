"""
Which model fits on a page and costs least?
===========================================

Breast tumours by measurements of their cells. A missed malignant tumour costs twenty biopsies of
benign ones. The main job compares all families on held-out rows and keeps one page.
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from laconic import LaconicClassifier, baseline_costs, expected_cost
from laconic.displays import CandidatesDisplay, TermsDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
costs = {"malignant": {"benign": 20}, "benign": {"malignant": 1}}  # truth, then decision

model = LaconicClassifier(costs, random_state=0).fit(X_train, y_train)
model.comparison_

# %%
# Cost against size: the committee is everything known, the page is what is kept.
CandidatesDisplay.from_estimator(model).plot()

# %%
# What the page costs more than the committee, with its standard error.
print(model.price_of_readability_)

# %%
# The page itself, its nine largest terms: what a variable adds to the log-odds of a malignant
# tumour.
TermsDisplay.from_estimator(model, range(9), X=X_train).plot()

# %%
# On the rows that neither the fit nor the choice has seen, beside the best constant decision.
print("page", expected_cost(y_test, model.predict(X_test), costs))
print("constant", baseline_costs(y_test, costs))
