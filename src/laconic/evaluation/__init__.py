"""Costs, class-mix shift and displays."""
