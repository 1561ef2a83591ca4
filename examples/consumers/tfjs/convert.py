"""SavedModels in graph mode to TF.js graph models: python convert.py SAVED_MODEL FOLDER [SAVED_MODEL FOLDER ...].

Runs in an environment of its own, with tensorflowjs 4.22, whose converter imports two packages that no graph model
needs and that do not go with TensorFlow 2.21: empty modules stand for them.
"""

import sys
import types

import keras  # noqa: F401  (before there is an empty jax: it asks for parts of it)

for name in ("tensorflow_decision_forests", "jax", "jax.experimental", "jax.experimental.jax2tf"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["jax.experimental"].jax2tf = sys.modules["jax.experimental.jax2tf"]

from tensorflowjs.converters import convert_tf_saved_model  # noqa: E402

for saved_model, folder in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    convert_tf_saved_model(
        saved_model,
        folder,
        strip_debug_ops=True,  # the assertions of shapes
        skip_op_check=True,  # before constants are computed, there are operations on the bits of random numbers
        control_flow_v2=True,  # loops as functions; lowered ones get fused products that the backends do not have
    )
