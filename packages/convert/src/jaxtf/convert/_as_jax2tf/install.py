"""`install_as_jax2tf`: programs that import jax2tf get jaxtf, without a change to them.

What changes is the process: entries of `sys.modules`, `jax.experimental.jax2tf`, two functions of `jax.export`, and
the names in modules that were imported before and hold any of these. Each change knows what was there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from jaxtf import shapepoly
from jaxtf.convert._as_jax2tf.modules import JAX2TF, LazyModule, new_modules
from jaxtf.serialization.interop import require_jax

__all__ = ["install_as_jax2tf"]

_ABSENT = object()

# `jax.export` has the same object, and modules may hold it for that.
_SHARED_WITH_JAX = frozenset(("DisabledSafetyCheck",))

# The questions of `jax.export` about sizes, which are answered for those of jaxtf.shapepoly too.
_OF_SIZES = {
    "is_symbolic_dim": shapepoly.is_symbolic_dim,
    "symbolic_dim_bounds": shapepoly.symbolic_dim_bounds,
}


def install_as_jax2tf() -> AbstractContextManager[object]:
    """Puts jaxtf where programs look for jax2tf, for the whole process: libraries that import it run unmodified.

    `jax.experimental.jax2tf` becomes a module with the names of jaxtf, TensorFlow being imported with the first of
    them that is used; `call_tf` is that of jaxtf.calltf. `jax.export.is_symbolic_dim` and `symbolic_dim_bounds` answer
    for sizes of jaxtf too; the rest of `jax.export` is unchanged. Modules that were imported before and have a name for
    jax2tf or for one of its functions get those of jaxtf, so that the order of imports does not matter. A function that
    a program keeps elsewhere is not replaced: in a class, a container, a `functools.partial`.

    Returns:
      A context manager, for a use that ends: on exit everything is restored, except for modules imported in between,
      which keep what they imported. Without `with`, jaxtf stays. Where it is installed already, nothing happens, also
      on exit.

    Raises:
      JaxRequiredError: JAX is not installed.

    >>> import jax.numpy as jnp
    >>> from jaxtf.convert import install_as_jax2tf
    >>> with install_as_jax2tf():
    ...     from jax.experimental import jax2tf
    ...     jax2tf.convert(jnp.sin)(0.0).numpy()
    np.float32(0.0)
    """
    require_jax("install_as_jax2tf", "jaxtf-convert")
    with ExitStack() as stack:
        if not isinstance(sys.modules.get(JAX2TF), LazyModule):
            for change in _changes():
                stack.callback(change.undo)
                change.do()
        undo = stack.pop_all()
    return undo


@dataclass(frozen=True)
class _Change:
    """A name that becomes another value, or is taken away.

    Attributes:
      names: The names of a module, or the modules of the process.
      name: One of them.
      value: What it becomes; `_ABSENT` takes it away.
      before: What it was.
    """

    names: dict[str, Any]
    name: str
    value: Any
    before: Any

    @classmethod
    def of(cls, names: dict[str, Any], name: str, value: Any) -> _Change:
        """A change of what is there now."""
        return cls(names, name, value, names.get(name, _ABSENT))

    def do(self) -> None:
        """Changes it."""
        _put(self.names, self.name, self.value)

    def undo(self) -> None:
        """Restores the previous values that have not been changed since."""
        if self.names.get(self.name, _ABSENT) is self.value:
            _put(self.names, self.name, self.before)


def _put(names: dict[str, Any], name: str, value: Any) -> None:
    if value is _ABSENT:
        names.pop(name, None)
    else:
        names[name] = value


def _changes() -> list[_Change]:
    import jax.experimental  # here: `install_as_jax2tf` refuses by name where there is no JAX

    modules = new_modules()
    new = modules[JAX2TF]
    old = {name: module for name, module in sys.modules.items() if name == JAX2TF or name.startswith(f"{JAX2TF}.")}
    export = vars(sys.modules["jax.export"])  # `import jax` imports it
    sizes = _for_sizes_of_both(export)
    # Old object -> new one. It is looked for by identity: some cannot be compared, or hashed.
    replaced = [(export[name], function) for name, function in sizes.items()] + _replacements(new, old)
    process: dict[str, Any] = sys.modules
    return [
        *(_Change.of(export, name, function) for name, function in sizes.items()),
        *(_Change.of(process, name, _ABSENT) for name in old.keys() - modules.keys()),
        *(_Change.of(process, name, module) for name, module in modules.items()),
        _Change.of(vars(jax.experimental), "jax2tf", new),
        *_held_elsewhere({id(before): after for before, after in replaced}),
    ]


def _replacements(new: LazyModule, old: dict[str, ModuleType]) -> list[tuple[Any, Any]]:
    """What modules may hold of upstream's, each with what it becomes; what was in its place before is nobody's.

    Upstream's submodules become the one module: it has their public names.
    """
    upstream = [module for name, module in old.items() if module.__name__ == name]
    names = [name for name in new.__all__ if name not in _SHARED_WITH_JAX]
    functions = [(vars(module)[name], name) for module in upstream for name in names if name in vars(module)]
    return [(module, new) for module in upstream] + [(function, getattr(new, name)) for function, name in functions]


def _held_elsewhere(replaced: dict[int, Any]) -> list[_Change]:
    """The changes of modules that hold an object with such an `id`; JAX's own stay as they are."""
    found = []
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and name.partition(".")[0] not in ("jax", "jaxlib"):
            # Not `vars`: a module that loads itself later would do so now.
            names = object.__getattribute__(module, "__dict__")
            held = [(name, value) for name, value in list(names.items()) if id(value) in replaced]
            found += [_Change.of(names, name, replaced[id(value)]) for name, value in held]
    return found


def _for_sizes_of_both(functions: dict[str, Any]) -> dict[str, Callable[[Any], Any]]:
    """Those of JAX's functions that ask about one size, as functions that also answer for ours.

    Args:
      functions: The public names of `jax.export`. JAX 0.10 has no `symbolic_dim_bounds`; then there is none here.
    """
    return {name: _for_both(functions[name], ours) for name, ours in _OF_SIZES.items() if name in functions}


def _for_both(of_jax: Callable[[Any], Any], ours: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(of_jax)
    def answer(dimension: Any) -> Any:
        return (ours if shapepoly.is_symbolic_dim(dimension) else of_jax)(dimension)

    return answer
