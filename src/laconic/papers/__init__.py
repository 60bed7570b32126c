"""One file per paper: its experiments, its published numbers, ours."""
