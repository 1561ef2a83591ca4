"""For which TensorFlow a module is written, where TensorFlow reads more or less than the installed jaxlib writes."""

import logging
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ConversionOptionError, TensorFlowTooOld, _tf, convert, convert_exported, save_model, verify
from jaxtf.convert._native.consumer import installed_reads
from jaxtf.serialization import export, negotiate, tensorflow_reads
from jaxtf.serialization._program import module as module_module
from jaxtf.serialization._program import portable_artifact
from jaxtf.serialization._record.tensorflow import RELEASES
from jaxtf.shapepoly import symbolic_shape

X = np.linspace(0, 1, 3, dtype=np.float32)


def waves(x):
    return jax.scipy.special.erf(x * 2)


def specification():
    return jax.ShapeDtypeStruct(symbolic_shape("b"), jnp.float32)


def saved(folder, **options):
    signature = {"input_signatures": [tf.TensorSpec([None], tf.float32)], "polymorphic_shapes": ["(b,)"]}
    return save_model(lambda params, x: waves(x), {}, folder, **signature, **options)


def by_convert(folder):
    np.testing.assert_allclose(convert(waves, polymorphic_shapes=["(b,)"])(X), waves(X), rtol=1e-6)


def by_save_model(folder):
    np.testing.assert_allclose(tf.saved_model.load(saved(folder).path)(X), waves(X), rtol=1e-6)


def by_verify(folder):
    assert verify(waves, specification(), backends=["eager"], gradients=False).ok


@pytest.fixture
def made_up(monkeypatch):
    """Sets what TensorFlow says that it reads and jaxlib that it writes; versions that both really know."""

    def set_versions(reads, writes):
        monkeypatch.setattr(_tf, "stablehlo_version", lambda: reads)
        for module in (portable_artifact, module_module):
            monkeypatch.setattr(module, "current_stablehlo_version", lambda: writes)

    return set_versions


# Who is newer -> what TensorFlow reads and jaxlib writes; the lower of them is 1.9.0.
MADE_UP = {"consumer": ("1.9.1", "1.9.0"), "neither": ("1.9.0", "1.9.0"), "producer": ("1.9.0", "1.9.1")}


@pytest.mark.parametrize("converted", [by_convert, by_save_model, by_verify])
@pytest.mark.parametrize("newer", MADE_UP)
def test_a_module_is_written_in_the_lower_of_what_tensorflow_reads_and_jaxlib_writes(
    converted, newer, tmp_path, caplog, made_up
):
    """TensorFlow 2.22 reads StableHLO 1.20; the newest JAX for Python 3.11 writes 1.17."""
    made_up(*MADE_UP[newer])
    caplog.set_level(logging.INFO, "jaxtf")
    converted(tmp_path / "model")
    assert set(re.findall(r"stablehlo_version=([\d.]+), ", caplog.text)) == {"1.9.0"}


@pytest.mark.parametrize("newer", MADE_UP)
@pytest.mark.parametrize("version", ["1.9.0", "1.9.1"])
def test_an_artifact_is_rewritten_only_where_tensorflow_does_not_read_it(version, newer, caplog, made_up):
    artifact = export(waves, stablehlo_version=version)(specification()).serialize()
    reads, writes = MADE_UP[newer]
    made_up(reads, writes)
    caplog.set_level(logging.INFO, "jaxtf")
    if version > reads and version > writes:
        with pytest.raises(TensorFlowTooOld, match=r"and the installed jaxlib is too old to rewrite it\n"):
            convert_exported(artifact)
        return
    np.testing.assert_allclose(convert_exported(artifact)(X), waves(X), rtol=1e-6)
    assert re.findall(r"stablehlo_version=([\d.]+), ", caplog.text) == [min(version, reads)]


def test_a_module_newer_than_tensorflow_reads_is_refused_where_jax_cannot_rewrite_it(monkeypatch, made_up):
    exported = export(waves, stablehlo_version="1.9.1")(specification())
    made_up("1.9.0", "1.9.1")

    def no_jax(self, version):
        raise ImportError("jax")

    monkeypatch.setattr(type(exported), "with_stablehlo_version", no_jax)
    with pytest.raises(TensorFlowTooOld) as caught:
        convert_exported(exported)
    assert str(caught.value) == (
        f"the module of 'waves' is written for StableHLO 1.9.1; TensorFlow {tf.__version__} reads up to 1.9.0, and "
        "JAX, which could rewrite it, is not installed\n"
        f"  remedy: export it with tensorflow_version='{tf.__version__}', or rewrite the artifact where JAX is: "
        f"jaxtf-artifact upgrade FILE -o OUT --tensorflow-version {tf.__version__}"
    )


def test_what_the_remedy_names_is_read_by_this_tensorflow():
    exported = export(waves, tensorflow_version=tf.__version__)(specification())
    assert negotiate(installed_reads(), tensorflow_reads(tf.__version__)) == tensorflow_reads(tf.__version__)
    np.testing.assert_allclose(convert_exported(exported)(X), waves(X), rtol=1e-6)


def test_the_table_of_tensorflow_releases_is_what_the_installed_one_says():
    if "dev" in tf.__version__:
        pytest.skip("a nightly build of TensorFlow is in no table")
    version = tuple(map(int, tf.__version__.split(".")[:2]))
    assert version in RELEASES, f"add TensorFlow {tf.__version__} to _tensorflow.RELEASES: {installed_reads()}"
    assert RELEASES[version] == installed_reads()


def test_the_page_has_the_table_of_tensorflow_releases():
    page = (Path(__file__).parents[4] / "docs" / "convert.md").read_text(encoding="utf-8")
    rows = [
        f"| {'.'.join(map(str, release))} | {reads.stablehlo_version} | {reads.calling_convention_version} |"
        for release, reads in RELEASES.items()
    ]
    assert "\n".join(("| --- | --- | --- |", *rows, "")) in page


@pytest.mark.parametrize("version", ["2.19", "2.19.1", "2.20", "2.21.0", "2.22.0rc0", "3.0"])
def test_a_module_is_written_for_the_tensorflow_asked_for(version, tmp_path, caplog):
    caplog.set_level(logging.INFO, "jaxtf")
    model = saved(tmp_path / "model", tensorflow_version=version)
    expected = negotiate(negotiate(tensorflow_reads(version), installed_reads()))
    messages = [record.getMessage() for record in caplog.records]
    written = [line for line in messages if "calling_convention_version=" in line]  # others say how far it is
    assert len(written) == 2  # and its VJP
    for line in written:
        assert f"calling_convention_version={expected.calling_convention_version}, " in line
        assert f"stablehlo_version={expected.stablehlo_version}, " in line
    np.testing.assert_allclose(tf.saved_model.load(model.path)(X), waves(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("version", "reported"),
    [
        (
            "2.18",
            r"tensorflow_version='2\.18' is older than any TensorFlow that modules can be written for\n  oldest: 2\.19",
        ),
        ("new", r"tensorflow_version must be the version of a TensorFlow release, such as '2\.20'\. Got: 'new'"),
        (2.20, r"tensorflow_version must be the version of a TensorFlow release, such as '2\.20'\. Got: 2\.2"),
    ],
)
def test_a_version_that_is_none_is_refused(version, reported):
    with pytest.raises(ConversionOptionError, match=reported):
        convert(waves, tensorflow_version=version)
