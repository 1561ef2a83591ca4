"""The version of the distribution that is installed."""

import importlib.metadata

__version__ = importlib.metadata.version("jaxtf-shapepoly")
