"""What the TensorFlow that is to run a module reads: the installed one, or another one by its version.

`KNOWN` is the compatibility record: what releases of TensorFlow say of themselves. A newer TensorFlow reads what an
older one reads, so a release between two recorded ones counts as the older, and one beyond the newest as the newest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxtf.convert import _tf
from jaxtf.convert._errors import ConversionOptionError

__all__ = ["KNOWN", "Consumer", "consumer"]


@dataclass(frozen=True)
class Consumer:
    """The newest that a TensorFlow reads.

    Attributes:
      calling_convention_version: Of XlaCallModule.
      stablehlo_version: Of the module in it.
    """

    calling_convention_version: int
    stablehlo_version: str

    def order(self) -> tuple[int, ...]:
        """What sorts older consumers first; newer releases read both newer calling conventions and newer StableHLO."""
        return tuple(map(int, self.stablehlo_version.split(".")))


# Release of TensorFlow -> what its `call_module_maximum_supported_version()` and `stablehlo.get_current_version()`
# gave (2.19.1, 2.20.0, 2.21.0). `python3 run.py older_tensorflow` loads what is written for the older two there.
KNOWN = {
    (2, 19): Consumer(9, "1.9.1"),
    (2, 20): Consumer(10, "1.12.1"),
    (2, 21): Consumer(10, "1.13.7"),
}


def consumer(tensorflow_version: str | None) -> Consumer:
    """What the installed TensorFlow reads, or an older one of this version.

    A module is written on the installed one, which must read it too.

    Raises:
      ConversionOptionError: Not a version, or one older than those recorded.
    """
    installed = Consumer(_tf.newest_calling_convention_version(), _tf.stablehlo_version())
    if tensorflow_version is None:
        return installed
    numbers = re.fullmatch(r"(\d+)\.(\d+)(\.\w+)*", tensorflow_version) if isinstance(tensorflow_version, str) else None
    if numbers is None:
        raise ConversionOptionError(
            "tensorflow_version must be the version of a TensorFlow release, such as '2.20'. "
            f"Got: {tensorflow_version!r}"
        )
    asked = (int(numbers[1]), int(numbers[2]))
    older = [version for version in KNOWN if version <= asked]
    if not older:
        (major, minor), *_ = KNOWN
        raise ConversionOptionError(
            f"tensorflow_version={tensorflow_version!r} is older than any TensorFlow that modules can be written for\n"
            f"  oldest: {major}.{minor}"
        )
    return min(installed, KNOWN[max(older)], key=Consumer.order)
