"""Columns cut into few parts without parameters: MODL partitions, grids, trees, the encoder."""
