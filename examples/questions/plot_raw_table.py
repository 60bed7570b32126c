"""
My table comes from a spreadsheet: will it be read right?
=========================================================

Dates as text, amounts with a currency and a decimal comma, yes and no, a number that is a name.
``look`` says what every column is read as and why, before anything is fitted.
"""

# %%
import numpy as np
import pandas as pd

import laconic

draw = np.random.default_rng(0)
n = 600
amount, present = draw.lognormal(4, 1, n), draw.random(n) < 0.8
days = pd.Timestamp("2025-01-01") + pd.to_timedelta(draw.integers(0, 365, n), unit="D")
odds = -3.5 + 0.9 * np.log(amount / 55) + 1.5 * ~present
table = pd.DataFrame(
    {
        "payment": [f"P{i:06d}" for i in draw.permutation(n)],
        "date": days.strftime("%d/%m/%Y"),
        "amount": [f"{value:.2f} EUR".replace(".", ",") for value in amount],
        "card present": np.where(present, "Yes", "No"),
        "branch": draw.choice(["075", "131", "692"], n),
    }
)
fraud = np.where(draw.random(n) < 1 / (1 + np.exp(-odds)), "fraud", "genuine")
table.head()

# %%
print(laconic.look(table, fraud))

# %%
# The number of the payment names a row and is left out. The reading is learnt at the fit and is
# part of the model: the same cells mean the same later.
model = laconic.LaconicClassifier({"fp": 1, "fn": 10}, positive="fraud", random_state=0)
model.fit(table.drop(columns="payment"), fraud)
print(model.candidate_, model.size_)
