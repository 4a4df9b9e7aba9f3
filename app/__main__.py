"""`python -m app`: how the application starts its own child processes."""

from app.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
