"""The sparse additive model: few curves and grids, chosen on held-out rows, certified."""
