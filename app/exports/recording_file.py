"""`recording.json`, which opens again with everything it had."""

from __future__ import annotations

from pathlib import Path

from app.core import files
from app.core.recording import Recording


def write(recording: Recording, path: Path) -> Path:
    """Write the recording; raises OSError."""
    files.save(recording, path)
    return path
