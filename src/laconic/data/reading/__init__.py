"""What the columns of a table mean: numbers, dates, yes/no, codes, categories, text, ids."""
