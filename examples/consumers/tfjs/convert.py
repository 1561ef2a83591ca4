"""SavedModels in graph mode to TF.js graph models: python convert.py SAVED_MODEL FOLDER [SAVED_MODEL FOLDER ...].

Runs in an environment of its own, with tensorflowjs 4.22, whose converter imports two packages that no graph model
needs and that do not go with TensorFlow 2.21: empty modules replace them. One of its functions is replaced.
"""

import sys
import types

import keras  # noqa: F401  (before there is an empty jax: it asks for parts of it)

for name in ("tensorflow_decision_forests", "jax", "jax.experimental", "jax.experimental.jax2tf"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["jax.experimental"].jax2tf = sys.modules["jax.experimental.jax2tf"]

from tensorflowjs.converters import convert_tf_saved_model, graph_rewrite_util  # noqa: E402


def rename_constants(nodes, prefix):
    """Copies of a function's nodes, with a prefix to the names of constants, and to those where they are inputs.

    Replaces tensorflowjs's own, which gives the prefix to all inputs whose names begin like a constant's: where
    `range` is a constant and `range_1` is not, it makes an input that no node gives (found with 4.22).
    """
    constants = {node.name for node in nodes if node.op == "Const"}

    def renamed(name):  # of a node, `range`; of its result, `range:output:0`; of what must run before, `^range`
        node = name.lstrip("^").partition(":")[0]
        return name.replace(node, f"{prefix}/{node}", 1) if node in constants else name

    copies = []
    for node in nodes:
        copy = type(node)()
        copy.CopyFrom(node)
        copy.name = renamed(node.name)
        copy.input[:] = map(renamed, node.input)
        copies.append(copy)
    return copies


graph_rewrite_util.rename_constants = rename_constants

for saved_model, folder in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    convert_tf_saved_model(
        saved_model,
        folder,
        strip_debug_ops=True,  # the assertions of shapes
        control_flow_v2=True,  # loops as functions; lowered ones get fused products that the backends do not have
    )
