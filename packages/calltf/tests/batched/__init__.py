"""Operations of TensorFlow, all their attributes drawn, on operands of which some have a batch axis."""

from . import along, elementwise, moves, products, windows
from .operation import MAKERS, Operation, operations

__all__ = ["MAKERS", "Operation", "along", "elementwise", "moves", "operations", "products", "windows"]
