"""Costs, the deployed class mix and abstention, over any probability model."""
