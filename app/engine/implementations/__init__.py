"""The contenders: one file each, one small interface, a registry keyed by the catalog's ids."""

from app.engine.implementations.base import Implementation, Need, Unsupported
from app.engine.implementations.registry import Registry, shipped

__all__ = ["Implementation", "Need", "Registry", "Unsupported", "shipped"]
