"""What a majority vote is made of: stumps, kernels, trees, given scores or classifiers."""
