"""Is the model still what it was? Class mix, columns and cost of new rows, without labels."""
