"""Linear scores: the gray-zone logistic regression, the plain one, and their Newton methods."""
