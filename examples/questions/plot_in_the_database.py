"""
Can it run in the database?
===========================

A model that is a sum of terms is a query. The statement holds numbers and comparisons only, and
decides as Python does.
"""

# %%
import sqlite3

import numpy as np
from sklearn.datasets import load_breast_cancer

from laconic import DecisionClassifier, ScorecardClassifier, to_sql

data = load_breast_cancer(as_frame=True)
X = data.data.rename(columns=lambda name: name.replace(" ", "_"))
y = data.target_names[data.target]
costs = {"fp": 1, "fn": 20}
model = DecisionClassifier(ScorecardClassifier(), costs, positive="malignant").fit(X, y)
query = to_sql(model, dialect="sqlite", table="tumours", key="id")
print(query[:900], "...")

# %%
connection = sqlite3.connect(":memory:")
X.assign(id=range(len(X))).to_sql("tumours", connection, index=False)
rows = sorted(connection.execute(query))
print(np.mean([row[-1] for row in rows] == model.predict(X)))
