"""The release of this package: what `pip show jaxtf-serialization` says, and what artifacts record."""

from __future__ import annotations

__all__ = ["RELEASE"]

RELEASE = "0.1.0"
