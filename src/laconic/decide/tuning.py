"""Tuned numbers of the decision layer, each with the sentence why."""

MARGINS = (4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5)
"""Standard errors by which a learned rule keeps its levels, the most cautious first: at 4 the first
test of the sequence passes unless the levels cannot be kept, and below 0.5 none passes."""
STEPS = (-2.0, -1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Moves of the logarithm of a class weight: factors from 1.1 to 7.4."""
SWEEPS = 8
"""Passes of the coordinate search; three classes end after three to five."""
RECALIBRATION_SPREAD = 0.1
"""Standard deviation of the prior of a recalibration's power and biases. Mean error of the class
mix on eight sets, four fits each (crx, cmc, phoneme2254, titanic, vehicle, sickeuthyroid,
australian, drebin215): .0504 with 0.05, .0500 with 0.1, .0501 with 0.2, .0510 with 5; .0512 as the
model says it."""
SCORE_BINS = 8
"""Quantiles of each class that cut the score: twice as many gain nothing on 2,000 rows."""
COLUMN_BINS = 10
"""Quantiles that cut a column of numbers, for what new rows are compared with. By convention."""
MOST_TEXTS = 20
"""Commonest texts that a column is counted by. By convention."""
