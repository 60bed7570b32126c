"""Models that leave Python."""
