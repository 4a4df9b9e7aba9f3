"""`python -m app`, the same as `python main.py`."""

from app.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
