"""The command line."""

from laconic.cli.app import main

__all__ = ["main"]
