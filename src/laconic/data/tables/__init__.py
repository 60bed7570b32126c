"""Any frame or file in, named columns of two kinds out; how a fitted model reads one column."""
