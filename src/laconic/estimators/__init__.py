"""The scikit-learn face: validate, call a solver, store."""
