"""Two recordings beside each other: what changed, on which machines."""
