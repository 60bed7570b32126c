"""
Selective naive Bayes: the average of many selections
=====================================================

Searches from several random orders meet many selections of variables; each variable is weighed by
the share of them that have it, each counted by how much it compresses the labels. The weighted
naive Bayes fits its weights instead, and keeps fewer variables.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from laconic import WeightedNaiveBayes
from laconic.bayes import SelectiveNaiveBayes

data = load_breast_cancer(as_frame=True)
models = {
    "averaged": SelectiveNaiveBayes(random_state=0),
    "best selection": SelectiveNaiveBayes(averaging="map", random_state=0),
    "weights fitted": WeightedNaiveBayes(random_state=0),
}
for name, model in models.items():
    model.fit(data.data, data.target)
    print(
        f"{name}: {len(model.selected_features_)} variables, compression {model.compression_:.3f}"
    )

# %%
weights = {
    name: dict(zip(model.variable_names_, model.weights_, strict=True))
    for name, model in models.items()
}
shown = sorted(set().union(*(model.selected_features_ for model in models.values())))
place = np.arange(len(shown))
for k, (name, own) in enumerate(weights.items()):
    plt.barh(place + 0.27 * (1 - k), [own.get(column, 0.0) for column in shown], 0.27, label=name)
plt.yticks(place, shown, fontsize=8)
plt.xlabel("weight")
plt.legend()
plt.tight_layout()
