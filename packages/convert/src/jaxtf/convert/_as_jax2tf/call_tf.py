"""`call_tf` of jaxtf.calltf; where that is not installed, a function that raises when it is called.

jaxtf.convert does not need jaxtf.calltf, and most programs that import jax2tf never call TensorFlow from JAX.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from jaxtf.convert._errors import CalltfRequiredError

__all__ = ["call_tf"]


def _found() -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = importlib.import_module("jaxtf.calltf").call_tf
    except ModuleNotFoundError as error:
        if error.name != "jaxtf.calltf":
            raise
        return _refuse
    return found


def _refuse(callable_tf: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuses any call.

    Raises:
      CalltfRequiredError: Always.
    """
    raise CalltfRequiredError(
        f"jax2tf.call_tf is provided by jaxtf.calltf, which is not installed; asked to call: {callable_tf!r:.60}\n"
        "  remedy: pip install jaxtf-calltf"
    )


call_tf = _found()
