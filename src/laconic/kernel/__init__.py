"""The gray zone on kernels: few rows carry the boundary."""
