"""Naive Bayes with few variables: weights by certified Newton or by the searches of the paper."""
