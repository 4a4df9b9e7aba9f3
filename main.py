"""Starts AttnScope from a checkout: `python main.py --help`."""

from app.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
