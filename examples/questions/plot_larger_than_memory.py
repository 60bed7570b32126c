"""
The rows do not fit in memory
=============================

A folder of Parquet files is read block by block: the same call of ``fit``, the same model as from
the table in memory, and predictions that come block by block as well.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.metrics import roc_auc_score

from laconic import WeightedNaiveBayes, scan

folder = Path(tempfile.mkdtemp())
draw = np.random.default_rng(0)
parts = []
for day in range(6):
    amount, hour = draw.lognormal(3.0, 1.0, 5_000), draw.integers(0, 24, 5_000)
    score = -4.5 + 0.6 * np.log(amount) + 1.5 * (hour < 6)
    fraud = draw.random(5_000) < 1.0 / (1.0 + np.exp(-score))
    parts.append(pl.DataFrame({"amount": amount, "hour": hour, "fraud": fraud}))
    parts[-1].write_parquet(folder / f"day{day}.parquet")

# %%
# Five days to learn from, the last one is new.
files = [folder / f"day{day}.parquet" for day in range(5)]
model = WeightedNaiveBayes(random_state=0).fit(scan(files, target="fraud"))
whole = pl.concat(parts[:5])
same = WeightedNaiveBayes(random_state=0).fit(whole[["amount", "hour"]], whole["fraud"])
print("largest difference of a weight from that of the table in memory:",
      np.abs(model.weights_ - same.weights_).max())  # fmt: skip

# %%
new = folder / "day5.parquet"
chances = np.concatenate([block[:, 1] for block in model.predict_proba(scan(new))])
fraud = parts[5]["fraud"].to_numpy()
print(f"AUC on the new day: {roc_auc_score(fraud, chances):.3f}")
plt.hist([chances[~fraud], chances[fraud]], 30, label=["honest", "fraud"], density=True)
plt.xlabel("probability of fraud")
plt.ylabel("density")
plt.legend()
