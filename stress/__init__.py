"""Long searches for inputs that break a promise: ``make stress``."""
