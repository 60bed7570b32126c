"""The page: forms of several lengths, shortened and taught, and the choice among them."""
