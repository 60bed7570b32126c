"""The additive model on more rows than one process holds: sums over blocks, and a sample."""
