"""Where this user's files are kept."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def config_folder() -> Path:
    """Preferences and confirmations; ATTNSCOPE_CONFIG_DIR says otherwise."""
    override = os.environ.get("ATTNSCOPE_CONFIG_DIR")
    return Path(override) if override else Path(platformdirs.user_config_dir("attnscope", appauthor=False))
