"""``python -m laconic`` is the command line."""

from laconic.cli import main

if __name__ == "__main__":
    main()
