"""What is logged and written of a conversion."""

import json
import logging
import re

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert, convert_exported
from jaxtf.serialization import export

X = np.linspace(0, 1, 3, dtype=np.float32)


def waves(x):
    return jnp.sin(x) * 2


def test_the_log_tells_the_attributes_of_the_op_and_the_module(caplog):
    caplog.set_level(logging.DEBUG, "jaxtf")
    convert(waves, polymorphic_shapes=["(b,)"])(X)
    info, debug = (record for record in caplog.records if re.match("converted|module", record.getMessage()))
    assert info.name == debug.name == "jaxtf.convert"
    assert re.fullmatch(
        r"converted waves: calling_convention_version=\d+, stablehlo_version=[\d.]+, platforms=\['cpu'\], "
        r"disabled_checks=\[\], arguments={'args\[0\]': 'float32\[b\]'}, kept_arguments=\[0\], "
        r"results={'result': 'float32\[b\]'}, module_bytes=\d+",
        info.getMessage(),
    )
    assert re.match(r"module of waves:\n(#loc.*\n)*module @jit_waves", debug.getMessage())
    assert "stablehlo.sine" in debug.getMessage()


def test_the_log_is_silent_by_default(caplog):
    convert(waves)(X)
    assert not [record for record in caplog.records if record.name.startswith("jaxtf")]


def test_modules_are_written_to_the_folder_that_the_environment_names(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXTF_DUMP_DIR", str(tmp_path / "dump"))
    with tf.GradientTape() as tape:
        x = tf.Variable(X)
        y = convert(waves)(x)
    tape.gradient(y, x)
    files = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert [re.sub(r"-\w{12}\.", "-D.", name) for name in files] == [
        "waves-D.json",
        "waves-D.mlir",
        "waves_vjp-D.json",
        "waves_vjp-D.mlir",
    ]
    assert "stablehlo.sine" in (tmp_path / "dump" / files[1]).read_text()
    attributes = json.loads((tmp_path / "dump" / files[0]).read_text())
    assert attributes["arguments"] == {"args[0]": "float32[3]"}
    assert attributes["platforms"] == ["cpu"]


def test_without_jax_the_module_is_written_as_it_is(tmp_path, monkeypatch):
    exported = export(waves, tensorflow_version=tf.__version__)(jax.ShapeDtypeStruct((3,), jnp.float32))

    def no_jax(self):
        raise ImportError("jax")

    monkeypatch.setattr(type(exported), "mlir_module", no_jax)
    monkeypatch.setenv("JAXTF_DUMP_DIR", str(tmp_path))
    convert_exported(exported)
    [module] = tmp_path.glob("*.mlirbc")
    assert module.read_bytes() == exported.mlir_module_serialized
