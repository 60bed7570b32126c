"""
MODL: where to cut a column, without parameters
===============================================

The partition of least description length; on a column of noise it is one part.
"""

# %%
from sklearn.datasets import load_breast_cancer

from laconic import ModlEncoder
from laconic.displays import LevelDisplay, PartitionDisplay

data = load_breast_cancer(as_frame=True)
encoder = ModlEncoder().fit(data.data, data.target_names[data.target])
LevelDisplay.from_estimator(encoder).plot()

# %%
PartitionDisplay.from_estimator(encoder, "worst area").plot()

# %%
print(encoder.partitions_["worst area"])
