"""What is said of a conversion, and to which TensorFlow it is written."""

import json
import logging
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ConversionOptionError, _consumer, _tf, convert, convert_exported, save_model
from jaxtf.serialization import export

X = np.linspace(0, 1, 3, dtype=np.float32)


def waves(x):
    return jnp.sin(x) * 2


def test_the_log_tells_the_attributes_of_the_op_and_the_module(caplog):
    caplog.set_level(logging.DEBUG, "jaxtf")
    convert(waves, polymorphic_shapes=["(b,)"])(X)
    info, debug = caplog.records
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
    exported = export(waves, stablehlo_version=_tf.stablehlo_version())(jax.ShapeDtypeStruct((3,), jnp.float32))

    def no_jax(self):
        raise ImportError("jax")

    monkeypatch.setattr(type(exported), "mlir_module", no_jax)
    monkeypatch.setenv("JAXTF_DUMP_DIR", str(tmp_path))
    convert_exported(exported)
    [module] = tmp_path.glob("*.mlirbc")
    assert module.read_bytes() == exported.mlir_module_serialized


def test_the_record_of_tensorflow_releases_is_what_the_installed_one_says():
    installed = _consumer.Consumer(_tf.newest_calling_convention_version(), _tf.stablehlo_version())
    version = tuple(map(int, tf.__version__.split(".")[:2]))
    assert version in _consumer.KNOWN, f"add TensorFlow {tf.__version__} to _consumer.KNOWN: {installed}"
    assert _consumer.KNOWN[version] == installed


@pytest.mark.parametrize("version", ["2.19", "2.19.1", "2.20", "2.21.0", "3.0"])
def test_a_module_is_written_for_the_tensorflow_asked_for(version, tmp_path, caplog):
    caplog.set_level(logging.INFO, "jaxtf")
    saved = save_model(
        lambda w, x: jax.scipy.special.erf(x * w),
        np.float32(2),
        tmp_path / "model",
        input_signatures=[tf.TensorSpec([None], tf.float32)],
        polymorphic_shapes=["(b,)"],
        tensorflow_version=version,
    )
    asked, installed = (tuple(map(int, text.split(".")[:2])) for text in (version, tf.__version__))
    known = _consumer.KNOWN[min(installed, asked)]
    written = [record.getMessage() for record in caplog.records]
    assert len(written) == 2  # and its VJP
    for line in written:
        assert f"calling_convention_version={known.calling_convention_version}, " in line
        assert f"stablehlo_version={known.stablehlo_version}, " in line
    result = tf.saved_model.load(saved.path)(X)
    np.testing.assert_allclose(result, jax.scipy.special.erf(2 * X), rtol=1e-6)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (
            "2.18",
            r"tensorflow_version='2\.18' is older than any TensorFlow that modules can be written for\n  oldest: 2\.19",
        ),
        ("new", r"tensorflow_version must be the version of a TensorFlow release, such as '2\.20'\. Got: 'new'"),
        (2.20, r"tensorflow_version must be the version of a TensorFlow release, such as '2\.20'\. Got: 2\.2"),
    ],
)
def test_a_version_that_is_none_is_refused(version, said):
    with pytest.raises(ConversionOptionError, match=said):
        convert(waves, tensorflow_version=version)
