"""Convex risks: a certified solver for every loss, ranking, k-means with its K, principal maps."""
