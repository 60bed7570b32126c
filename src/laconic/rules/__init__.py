"""A few conditions and agreements of two, weighed together."""
