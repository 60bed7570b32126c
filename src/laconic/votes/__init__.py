"""Majority votes of few voters: MinCq, CqBoost, their rivals; C-bound and PAC-Bayes bounds."""
