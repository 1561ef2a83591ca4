"""Every routine of the project, once; `python3 run.py` lists them, `python3 run.py SESSION` runs one.

Sessions take the packages from the tree (editable), except `build`, which takes wheels. What a session
installs is declared: the packages' own pyproject.toml, and the tools below. Words after `--` go to pytest.
"""

from __future__ import annotations

import glob
import os
import runpy
import shutil
import time
import tomllib
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).resolve().parent
PYTHONS = ["3.11", "3.12", "3.13"]
NEXT_PYTHON = "3.14"  # TensorFlow 2.22.0rc0 is the first that has wheels for it (November 2026)
PACKAGES = ("shapepoly", "serialization", "convert", "calltf")  # each needs only those before it

EVERYTHING = ("shapepoly[jax]", "convert[jax]", "calltf")  # and what they need: all four

# What each package must work with: its declared needs alone, and each of its extras.
ISOLATED = ("shapepoly", "shapepoly[jax]", "serialization", "serialization[jax]", "convert[jax]", "calltf")

# Packages that work without JAX, and whose README shows what they do with it.
EXAMPLES_NEED_JAX = ("serialization", "convert")

# The tests, the longest processes first; two run at a time, a folder's files dealt out to as many as its number says.
TESTS = (
    "packages/convert/tests=3",
    "packages/calltf/tests",
    "packages/serialization/tests=2",
    "tests=3",
    "packages/shapepoly/tests",
)

GRIFFE = "griffe>=2"
SAFETENSORS = "safetensors>=0.5"  # an authority on its format
PYTEST = ("pytest>=9,<10", "hypothesis>=6.140", GRIFFE, SAFETENSORS)
RUFF = "ruff==0.17.*"
WORKFLOW_LINTERS = ("zizmor>=1.30,<2", "check-jsonschema>=0.39")
MYPY = "mypy==2.4.*"
MKDOCS = ("mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "mkdocstrings[python]>=1,<2", RUFF)
NOTEBOOKS = ("nbclient>=0.10", "ipykernel>=6.29", "scikit-learn")
LIBRARIES = ("flax>=0.12", "equinox>=0.13", "dm-haiku>=0.0.17")  # those on docs/libraries.md

# Only what the session asked for is used: a Python from this machine, and no accelerator unless the session is for one.
ON_CPU = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}

nox.needs_version = ">=2026"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"  # `python3 run.py tests --reuse-venv=never` makes a session's environment anew
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = True
nox.options.sessions = ["tests"]
os.environ["UV_PYTHON_DOWNLOADS"] = "never"
# Bytecode goes into the session's own environment: without it TensorFlow takes three times as long to import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pyproject(package: str) -> dict:
    return tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]


# --- the main job ---


@nox.session
def quickstart(session: nox.Session) -> None:
    """The main job: train in JAX, convert, serve from a process that has no JAX (examples/digits)."""
    example = Path("examples", "digits")
    out = Path("build", "digits")
    shutil.rmtree(out, ignore_errors=True)
    start = time.perf_counter()
    install(session, *from_tree("convert[jax]"), "scikit-learn", "rich")
    with_jax = time.perf_counter() - start
    serving = environment(session, "serving", "tensorflow")
    without_jax = time.perf_counter() - start - with_jax
    session.run("python", str(example / "train.py"), str(out), env={"JAX_PLATFORMS": "cpu"})
    session.run("python", str(example / "save.py"), str(out), env=ON_CPU)
    session.run(serving, str(example / "serve.py"), str(out), env=ON_CPU, external=True)
    installs = (f"with JAX={with_jax}", f"without JAX={without_jax}")
    session.run("python", str(example / "report.py"), str(out), *installs)


# --- tests ---


@nox.session
def tests(session: nox.Session) -> None:
    """All that must hold on a CPU, on this interpreter; ten minutes on two idle cores.

    Of tests with many cases a sample, always the same, without what takes long: `slow_tests` runs that, and `all_cases`
    every case.
    """
    all_tests(session, cases="sample")


@nox.session
def slow_tests(session: nox.Session) -> None:
    """What `tests` leaves out because it takes long, of many cases a sample too; eleven minutes on two idle cores."""
    all_tests(session, cases="slow")


@nox.session
def all_cases(session: nox.Session) -> None:
    """`tests`, with every case of every test; three quarters of an hour on two idle cores."""
    all_tests(session)


@nox.session(python=PYTHONS)
def matrix(session: nox.Session) -> None:
    """`all_cases` on every supported Python, with the newest JAX and TensorFlow each can have; in CI a quarter of them.

    Which quarter the hash of the commit decides.
    """
    quarter: tuple[str, ...] = ()
    if "CI" in os.environ:
        commit = str(session.run("git", "rev-parse", "HEAD", external=True, silent=True))
        quarter = in_ci(1 + int(commit, 16) % 4, 4)
    all_tests(session, options=quarter)


@nox.session(python=NEXT_PYTHON)
def next_python(session: nox.Session) -> None:
    """`all_cases` on Python 3.14, with TensorFlow's newest pre-release: no release has wheels for it. Untried."""
    all_tests(session, install_options=COMING["tensorflow"])


@nox.session(reuse_venv=False)
def lowest(session: nox.Session) -> None:
    """`all_cases` with the lowest version of every declared need."""
    all_tests(session, install_options=("--resolution", "lowest-direct"))


def all_tests(
    session: nox.Session, cases: str = "all", options: Sequence[str] = (), install_options: Sequence[str] = ()
) -> None:
    """Runs the tests of all folders, or pytest with the words given: then every case of what they name.

    Args:
      cases: Of tests with many cases `all`, or a `sample`; of the sample those that are `slow`.
      options: More for pytest.
      install_options: More for uv.
    """
    install(session, *install_options, *from_tree(*EVERYTHING), *PYTEST)
    if session.posargs:
        session.run("pytest", *session.posargs, env=ON_CPU)
        return
    session.run("python", "tools/run_tests.py", *TESTS, "--cases", cases, *options, env=ON_CPU)


@nox.session
def battery(session: nox.Session) -> None:
    """The battery of JAX functions at all sizes, with 64-bit numbers too, compiled as users compile; no TensorFlow."""
    install(session, *from_tree("shapepoly[jax]", "serialization[jax]"), *PYTEST)
    session.run("pytest", "tests/test_battery.py", *session.posargs, env=ON_CPU | {"JAXTF_FULL": "1"})


@nox.session
def hostile(session: nox.Session) -> None:
    """Artifacts whose record and module disagree, all of them, through every reader in JAX and TensorFlow."""
    install(session, *from_tree("convert[jax]"), *PYTEST)
    session.run("pytest", "tests/test_hostile_artifacts.py", *session.posargs, env=ON_CPU | {"JAXTF_FULL": "1"})


@nox.session
def killed(session: nox.Session) -> None:
    """Writers of files and SavedModels, each killed a hundred times at any moment: what is there is whole."""
    install(session, *from_tree("convert[jax]"), *PYTEST)
    files = ("packages/serialization/tests/_cli/test_cli.py", "packages/convert/tests/_saved_model/test_save_model.py")
    session.run("pytest", *files, "-k", "killed", *session.posargs, env=ON_CPU | {"JAXTF_FULL": "1"})


@nox.session
def hostile_models(session: nox.Session) -> None:
    """100,000 mutated files of programs with weights through describe, check and load; ten minutes.

    Words after `--` go to the script: `python3 run.py hostile_models -- --mutations 1000 --seed 3`.
    """
    install(session, *from_tree("serialization[jax]"))
    script = Path("packages", "serialization", "tests", "fuzz", "fuzz_models.py")
    session.run("python", str(script), *session.posargs, env=ON_CPU)


@nox.session
def large_model(session: nox.Session) -> None:
    """A program with 4 GB of weights: written, described, loaded and called, a process each, with its peak memory."""
    install(session, *from_tree("serialization[jax]"))
    session.run("python", "benchmarks/large_model.py", session.create_tmp(), *session.posargs, env=ON_CPU)


@nox.session
def battery_tensorflow(session: nox.Session) -> None:
    """The battery at all sizes through TensorFlow: eager, graph, compiled, SavedModel without JAX; half an hour."""
    install(session, *from_tree("convert[jax]"), *PYTEST)
    # In a process each: compiled programs are kept, with three memory maps or more, and Linux allows a process 65,530.
    parts = [["-k", part] for part in ("eager", "graph", "compiled", "serves")]
    for words in [session.posargs] if session.posargs else parts:
        session.run("pytest", "tests/test_battery_tensorflow.py", *words, env=ON_CPU | {"JAXTF_FULL": "1"})


@nox.session
def graph_harness(session: nox.Session) -> None:
    """Every case of JAX's harness of primitives in graph mode: eager, graph, compiled; some hours."""
    install(session, *from_tree("convert[jax]"), *PYTEST)
    session.run("pytest", "tests/test_graph_harness.py", *session.posargs, env=ON_CPU | {"JAXTF_FULL": "1"})


@nox.session
def harness_sweep(session: nox.Session) -> None:
    """JAX's harness of primitives in graph mode, some 44,500 rows, counted by mode; half an hour on two cores.

    The rows go to build/harness. Fails where one is not what `tests/harness_sweep.py` expects.
    """
    install(session, *from_tree("convert[jax]"), *PYTEST)
    variables = ON_CPU | {"JAX_ENABLE_X64": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    session.run("python", "tests/harness_sweep.py", "--sweep", "build/harness", *session.posargs, env=variables)


@nox.session
def lift_sweep(session: nox.Session) -> None:
    """Lifted modules compared with their functions: the battery, and JAX's harness of primitives; an hour and a half.

    Values, `vmap`, forward and reverse mode. Words after `--` choose, such as `harness --part 0/20`.
    """
    # JAX's harness needs absl and does not say so.
    install(session, *from_tree("shapepoly[jax]", "serialization[jax]"), *PYTEST, "absl-py")
    for words in [session.posargs] if session.posargs else (["battery"], ["harness"]):
        session.run("python", "tests/lift_sweep.py", *words, env=ON_CPU)


@nox.session
def random_programs(session: nox.Session) -> None:
    """JAX programs of random steps on six backends, compared with JAX: `python3 run.py random_programs -- 1000`.

    As many TensorFlow functions whose sizes depend on values, through `call_tf` on the same, compared with TensorFlow.
    As many StableHLO modules of what JAX never writes, in graph mode and lifted, compared with XLA; modules of open
    sizes, called with those that fit and others, compared with NumPy; derivatives that TensorFlow takes; and functions
    over several devices, exported and called in many ways.
    """
    install(session, *from_tree(*EVERYTHING), *PYTEST)
    count = {"RANDOM_PROGRAMS": session.posargs[0]} if session.posargs else {}
    names = "programs", "sizes_by_value", "texts", "open_sizes", "derivatives"
    paths = [f"tests/test_random_{name}.py" for name in names]
    for path in [*paths, "packages/serialization/tests/_call/test_random_shardings.py"]:
        session.run("pytest", path, env=ON_CPU | {"JAXTF_FULL": "1"} | count)


@nox.session
def random_families(session: nox.Session) -> None:
    """Each family of operations, all attributes drawn, against JAX: `python3 run.py random_families -- 500 scatter`.

    Then a third as many gradients that TensorFlow's tape takes of their modules. The number is of programs for each
    family, the names after it are families; all of them, 500 each, without. More than an hour for all. XLA
    keeps NaN in maxima here, by its flag (docs/convert.md), so that NaN is compared there too.
    """
    environment = ON_CPU | {"JAXTF_FULL": "1", "XLA_FLAGS": "--xla_cpu_enable_fast_min_max=false"}
    install(session, *from_tree(*EVERYTHING), *PYTEST)
    count, *families = session.posargs or ["500"]
    only = ["-k", " or ".join(f"[{family}]" for family in families)] if families else []
    # One process for each part: compiled programs are kept until it ends. One that fails does not keep the others.
    failed = []
    for part in range(1, 5):
        try:
            session.run(
                "pytest",
                *("tests/test_random_families.py", "tests/test_random_tapes.py"),
                "--sample",
                f"{part}/4",
                *only,
                env=environment | {"RANDOM_PROGRAMS": count},
                success_codes=[0, 5],  # 5: no test in this part
            )
        except CommandFailed:
            failed.append(part)
    if failed:
        session.error(f"parts that failed: {failed}")


@nox.session
def random_sizes(session: nox.Session) -> None:
    """TensorFlow functions of a symbolic size, drawn at random, against it: `python3 run.py random_sizes -- 500`.

    The number is of functions; 1,000 without. About twenty minutes.
    """
    install(session, *from_tree("calltf"), *PYTEST)
    [count] = session.posargs or ["1000"]
    # One process for each part: in one, a thousand functions end with 7 GB.
    for part in range(1, 5):
        session.run(
            "pytest",
            "packages/calltf/tests/test_random_sizes.py",
            "--sample",
            f"{part}/4",
            env=ON_CPU | {"JAXTF_FULL": "1", "RANDOM_PROGRAMS": count},
        )


@nox.session
def random_operations(session: nox.Session) -> None:
    """Operations of TensorFlow through `call_tf`, all attributes drawn: `python3 run.py random_operations -- 20`.

    Batches are compared with a loop, derivatives with differences; with TensorFlow, not compiled, programs whose sizes
    depend on values and operations on NaN, infinities and zeros. The number is of programs for each type and test; 30
    without, about an hour.
    """
    install(session, *from_tree("calltf"), *PYTEST)
    [count] = session.posargs or ["30"]
    # One process for each part: compiled programs are kept until it ends.
    for part in range(1, 5):
        session.run(
            "pytest",
            "packages/calltf/tests/test_vectorizations.py",
            "packages/calltf/tests/test_lost_derivatives.py",
            "packages/calltf/tests/test_dynamic_sizes.py",
            "packages/calltf/tests/test_special_numbers.py",
            "--sample",
            f"{part}/4",
            env=ON_CPU | {"JAXTF_FULL": "1", "RANDOM_PROGRAMS": count},
        )


@nox.session(reuse_venv=False)
@nox.parametrize("package", [nox.param(name, id=name) for name in ISOLATED])
def isolated(session: nox.Session, package: str) -> None:
    """A package's own tests with that package and its declared needs alone: `python3 run.py 'isolated(shapepoly)'`.

    In CI a small sample of them: what is missing from the declared needs shows in many.
    """
    name, _, extra = package.partition("[")
    # `jax.export`, which the tests compare with, needs flatbuffers and does not say so.
    install(session, *from_tree(package), *PYTEST, *(["flatbuffers"] if package == "serialization[jax]" else []))
    absent = [f"jaxtf.{other}" for other in PACKAGES if other not in (name, *siblings(name))]
    if not extra and "jax" in extras(name):
        absent += ["jax", "jaxlib"]
    session.run("python", "-c", f"from importlib.util import find_spec as f; assert not [n for n in {absent} if f(n)]")
    session.run("pytest", f"packages/{name}/tests", *in_ci(1, 40), *session.posargs, env=ON_CPU)


# Releases of TensorFlow that SavedModels are written for, older than the newest (serialization/_record/tensorflow.py).
OLDER_TENSORFLOW = ("2.19.1", "2.20.0")


@nox.session
@nox.parametrize("version", [nox.param(version, id=version) for version in OLDER_TENSORFLOW])
def older_tensorflow(session: nox.Session, version: str) -> None:
    """SavedModels written here for an older TensorFlow, served by that: `python3 run.py 'older_tensorflow(2.20.0)'`."""
    install(session, *from_tree("convert[jax]"), *PYTEST)
    serving = environment(session, "serving", f"tensorflow=={version}")
    consumer = {"JAXTF_SERVING_PYTHON": serving, "JAXTF_SERVING_TENSORFLOW": version}
    session.run("pytest", "tests/test_modes.py", "-k", "served or serves", *session.posargs, env=ON_CPU | consumer)


@nox.session
def versions(session: nox.Session) -> None:
    """Which JAX works with which TensorFlow on which Python: `tests/version_probe.py` in each; writes docs/versions.md.

    About an hour; TensorFlow's pre-releases are among them. Words after `--` choose, and the results of the other
    combinations stay: `python3 run.py versions -- 3.12 0.11.2`, `python3 run.py versions -- nightly`.
    """
    install(session, "uv")
    session.run("python", "tools/version_matrix.py", "build/versions", *session.posargs, env=ON_CPU)


# Nightly builds and release candidates of JAX: docs.jax.dev, Installation, "JAX nightly installation".
NIGHTLY = "https://us-python.pkg.dev/ml-oss-artifacts-published/jax/simple/"
JAX_PRE_RELEASE = ("jax>=0.12.dev0", "jaxlib>=0.12.dev0")
TENSORFLOW_PRE_RELEASE = ("tensorflow>=2.21.dev0", "--prerelease-package", "tensorflow=allow")


def oldest_jax() -> tuple[str, str]:
    """The oldest JAX that the packages say they work with."""
    [needed] = [need for need in pyproject("calltf")["dependencies"] if need.startswith("jax>=")]
    version = needed.removeprefix("jax>=")
    return f"jax=={version}", f"jaxlib=={version}"


# Pre-release -> what is installed for it, together with the newest release of the other framework for this Python.
COMING = {
    # That a requirement names a pre-release is not enough: uv 0.13 then takes the newest release, if that fits.
    "jax": (*JAX_PRE_RELEASE, "--prerelease-package", "jax=allow", "--prerelease-package", "jaxlib=allow"),
    "tensorflow": TENSORFLOW_PRE_RELEASE,
    "tensorflow_oldest_jax": (*TENSORFLOW_PRE_RELEASE, *oldest_jax()),
    "tf_nightly": ("tf-nightly",),  # of the package index
}
# `tf-nightly` is another distribution of the module `tensorflow`; that one must not be installed over it.
WITHOUT_TENSORFLOW = "tensorflow ; python_version < '3'\n"


@nox.session(python=PYTHONS)
@nox.parametrize("coming", [nox.param(name, id=name) for name in COMING])
def nightly(session: nox.Session, coming: str) -> None:
    """What is coming: JAX of tonight, TensorFlow's release candidate with the oldest and newest JAX, its nightly build.

    Says WORKS or FAILED, and succeeds anyway: `python3 run.py nightly`, `python3 run.py 'nightly-3.13(tf_nightly)'`.
    Runs the probe of `versions`, and the tests of the private names. Nothing here can mend what fails today; nox knows
    no session that may fail, so this one catches the failure and shouts. A word after `--` is another index for JAX.
    """
    needs = COMING[coming]
    if coming == "jax":
        index = session.posargs[0] if session.posargs else NIGHTLY
        try:
            urllib.request.urlopen(f"{index}jax/", timeout=30).close()
        except OSError as error:
            session.warn("NOT TRIED: the index of JAX's nightly builds cannot be reached: %s: %s", index, error)
            return
        needs = ("--index", index, "--index-strategy", "unsafe-best-match", *needs)
    if coming == "tf_nightly":
        overrides = Path(session.create_tmp(), "overrides.txt").resolve()
        overrides.write_text(WITHOUT_TENSORFLOW)
        needs = (*needs, "--overrides", str(overrides))
    tried = {
        "installation": lambda: install(session, *needs, *from_tree(*EVERYTHING), *PYTEST),
        "tests/version_probe.py": lambda: session.run("python", "tests/version_probe.py", env=ON_CPU),
        **{
            f"tests/test_{name}.py": lambda name=name: session.run("pytest", f"tests/test_{name}.py", env=ON_CPU)
            for name in ("private_names", "compatibility_modules")
        },
    }
    failed = []
    for name, step in tried.items():
        try:
            step()
        except CommandFailed:
            failed.append(name)
            if name == "installation":
                break
    # From their metadata: what failed may be the import.
    distribution = "tf_nightly" if coming == "tf_nightly" else "tensorflow"
    versions = (
        "from importlib.metadata import version as v; "
        f"print(*(f'{{n}} {{v(n)}}' for n in ('jax', 'jaxlib', '{distribution}')))"
    )
    found = "" if "installation" in failed else session.run("python", "-c", versions, silent=True).strip()
    session.warn("%s %s", f"FAILED ({', '.join(failed)}):" if failed else "WORKS:", found)


# --- the tests across packages, on one backend ---


@nox.session
def tests_cpu(session: nox.Session) -> None:
    """The tests across packages on a CPU."""
    install(session, *from_tree(*EVERYTHING), *PYTEST)
    session.run("pytest", "tests", *session.posargs, env=ON_CPU | {"JAXTF_TEST_PLATFORM": "cpu"})


@nox.session
def tests_cuda(session: nox.Session) -> None:
    """The tests across packages on an NVIDIA GPU."""
    if not glob.glob("/dev/nvidia[0-9]*"):
        session.error("tests_cuda needs an NVIDIA GPU: there is no /dev/nvidia0 on this machine")
    on_accelerator(session, "cuda", "jax[cuda12]", "tensorflow[and-cuda]")


@nox.session
def tests_tpu(session: nox.Session) -> None:
    """The tests across packages on a TPU."""
    if not (glob.glob("/dev/accel[0-9]*") or glob.glob("/dev/vfio/[0-9]*")):
        session.error("tests_tpu needs a TPU: there is no /dev/accel0 and no /dev/vfio/0 on this machine")
    on_accelerator(session, "tpu", "jax[tpu]")


def on_accelerator(session: nox.Session, platform: str, *requirements: str) -> None:
    install(session, *from_tree(*EVERYTHING), *requirements, *PYTEST)
    environment = {"JAX_PLATFORMS": f"{platform},cpu", "JAXTF_TEST_PLATFORM": platform, "TF_CPP_MIN_LOG_LEVEL": "2"}
    session.run("pytest", "tests", *session.posargs, env=environment)


# For a TPU that is not there: libtpu asks no metadata server what this machine is.
NO_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
NO_CUDA = {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
FOR_TPU = ("jax[tpu]",)
FOR_CUDA = ("jax-cuda12-plugin", "nvidia-cuda-nvcc-cu12")


@nox.session
def aot_tpu(session: nox.Session) -> None:
    """A sample of the battery, from one artifact, compiled for TPUs that are not there; in CI a part of the sample."""
    install(session, *from_tree("serialization[jax]"), *FOR_TPU, *PYTEST)
    words = (*in_ci(1, 3), *session.posargs)
    session.run("pytest", "tests/test_aot.py", *words, env=ON_CPU | NO_TPU | {"JAXTF_AOT": "tpu"})


@nox.session
def aot_cuda(session: nox.Session) -> None:
    """The same for NVIDIA GPUs that are not there."""
    install(session, *from_tree("serialization[jax]"), *FOR_CUDA, *PYTEST)
    words = (*in_ci(1, 3), *session.posargs)
    session.run("pytest", "tests/test_aot.py", *words, env=ON_CPU | NO_CUDA | {"JAXTF_AOT": "cuda"})


@nox.session(python=PYTHONS[-1])
def aot(session: nox.Session) -> None:
    """All of the batteries compiled for five TPUs and four GPUs, from one file each; writes docs/ahead_of_time.md."""
    install(session, *from_tree(*EVERYTHING), *FOR_TPU, *FOR_CUDA, *PYTEST)
    files = str(Path(session.create_tmp()).resolve())
    session.run("python", "-m", "tests.aot_table", files, *session.posargs, env=ON_CPU | NO_TPU | NO_CUDA)


# --- programs that people have ---

# What each program in examples/clients needs besides our packages.
CLIENTS = {
    "flax_linen": ("flax>=0.12",),
    "flax_nnx": ("flax>=0.12",),
    "keras_jax": ("keras>=3.15",),
    "orbax_export": ("orbax-export>=0.0.8",),
    "hub_keras": ("tensorflow-hub>=0.16", "tf-keras>=2.21", "setuptools<81"),
    "tf_data": (),
    "string_preprocessing": (),
    "c_program": (),
    "serving_client": ("tensorflow-serving-api>=2.21",),
    "optax_round_trip": ("optax>=0.2.5",),
    "keras_reuse": ("keras>=3.15",),
    "library_trees": ("optax>=0.2.5", "flax>=0.12", "equinox>=0.13", "dm-haiku>=0.0.17"),
    "checkpoint_to_model": ("flax>=0.12", "orbax-checkpoint>=0.11"),
    "torch_module": ("torch==2.13.*", "torchax==0.0.13", "flatbuffers"),  # UV_FIND_LINKS: a folder with a wheel for CPU
    "signed_model": ("model-signing>=1.1", "pyopenssl>=25"),  # which it imports and does not declare
}


@nox.session
@nox.parametrize("client", [nox.param(name, id=name) for name in CLIENTS])
def clients(session: nox.Session, client: str) -> None:
    """A program of examples/clients, which compares with JAX: `python3 run.py 'clients(keras_jax)'`."""
    ours = {"optax_round_trip": ("convert[jax]", "calltf"), "torch_module": ("serialization[jax]",)}
    install(session, *from_tree(*ours.get(client, ("convert[jax]",))), *CLIENTS[client])
    variables = {}
    if client == "serving_client":
        variables = {"JAXTF_SERVING_PYTHON": environment(session, "serving", "tensorflow", *CLIENTS[client])}
    folder = session.create_tmp()
    session.run("python", str(ROOT / "examples" / "clients" / f"{client}.py"), folder, env=ON_CPU | variables)


# What each program in examples/scientific needs besides our packages.
SCIENTIFIC = {
    "e3nn_layer": ("e3nn-jax>=0.21",),
    "mjx_step": ("mujoco-mjx>=3.17",),
    "s2fft_transform": ("s2fft>=1.5",),
    "diffrax_solve": ("diffrax>=0.7",),
}


@nox.session
@nox.parametrize("program", [nox.param(name, id=name) for name in SCIENTIFIC])
def scientific(session: nox.Session, program: str) -> None:
    """A program of examples/scientific in graph mode, values and gradients: `python3 run.py 'scientific(mjx_step)'`."""
    install(session, *from_tree("convert[jax]"), *SCIENTIFIC[program])
    session.run("python", str(ROOT / "examples" / "scientific" / f"{program}.py"), env=ON_CPU)


# What each program in examples/consumers needs besides our packages.
CONSUMERS = {
    "litert": ("ai-edge-litert==2.3.*",),
    "tfjs_node": (),
    "onnx_runtime": ("tf2onnx==1.17.*", "onnxruntime>=1.20"),
    "openvino_run": ("openvino==2026.4.*",),
    "web_page": ("scikit-learn", "rich", "playwright>=1.50"),
}
SYSTEM_PROGRAMS = {"tfjs_node": ("npm",), "web_page": ("npm", "chromium")}
TENSORFLOWJS = ("tensorflowjs==4.22.0", "tensorflow-hub==0.16.1", "tf-keras==2.21.0")  # without what they declare


@nox.session
@nox.parametrize("consumer", [nox.param(name, id=name) for name in CONSUMERS])
def consumers(session: nox.Session, consumer: str) -> None:
    """A program of examples/consumers, which compares with JAX: `python3 run.py 'consumers(litert)'`."""
    for program in SYSTEM_PROGRAMS.get(consumer, ()):
        if not shutil.which(program):
            session.error(f"consumers({consumer}) needs {program}: apt-get install {program}")
    install(session, *from_tree("convert[jax]"), *CONSUMERS[consumer])
    variables = {}
    if consumer in ("tfjs_node", "web_page"):
        python = environment(session, "tensorflowjs", "tensorflow==2.21.*", "setuptools<81", "packaging", "six")
        session.run("uv", "pip", "install", "--python", python, "--no-deps", *TENSORFLOWJS, external=True)
        variables = {"JAXTF_TFJS_PYTHON": python}
    folder = session.create_tmp()
    session.run("python", str(ROOT / "examples" / "consumers" / f"{consumer}.py"), folder, env=ON_CPU | variables)


# Packages that import jax2tf or `jax.export` and ship their tests: what is installed, what pytest runs, its variables.
PUBLISHED_TESTS = {
    "keras_export": (("keras==3.15.*", "flax"), ("keras/src/export/saved_model_test.py",), {"KERAS_BACKEND": "jax"}),
    "keras_layers": (
        ("keras==3.15.*", "flax", "dm-haiku"),
        ("keras/src/utils/jax_layer_test.py",),
        {"KERAS_BACKEND": "tensorflow"},
    ),
    "orbax_export": (
        ("orbax-export==0.0.8", "chex"),
        (
            *(f"orbax/export/{name}_test.py" for name in ("jax_module", "export_manager", "serving_config")),
            "orbax/export/tensorflow_export_test.py",
            "orbax/export/modules/tensorflow_module_test.py",
            *(f"orbax/export/validate/validation_{name}_test.py" for name in ("job", "manager")),
        ),
        {},
    ),
    "haiku": (("dm-haiku==0.0.17",), ("haiku/_src/integration/jax2tf_test.py",), {}),
    # In native mode tf2jax asks JAX's bindings for a module in a way that JAX 0.12 refuses.
    "tf2jax": (
        ("tf2jax==0.3.8", "dm-haiku", "flax", "chex"),
        ("tf2jax/_src/roundtrip_test.py",),
        {"JAX2TF_DEFAULT_NATIVE_SERIALIZATION": "false"},
    ),
    "tokamax": (
        ("tokamax==0.0.17", "chex"),
        (
            *(f"tokamax/_src/{name}_test.py" for name in ("shape", "pydantic")),
            "tokamax/_src/ops/normalization/api_test.py::LayerNormTest",
        ),
        {},
    ),
}

# The same, with a program of tests/published that uses the package.
PUBLISHED_PROGRAMS = {
    "equinox_onnx": ("equinox==0.13.*", "tf2onnx==1.17.*", "onnxruntime>=1.20"),
    "jax2onnx_symbolic": ("jax2onnx==0.17.*", "onnxruntime>=1.20"),
    "jaxonnxruntime_custom": ("jaxonnxruntime==0.3.0", "onnx>=1.17"),  # which it needs and does not declare
    "keras_hub_export": ("keras-hub==0.32.*",),
    "objax_module": ("objax==1.8.0",),
    "tensorflowjs_jax": ("flax", "setuptools<81", "packaging", "six"),
    "ydf_forest": ("ydf==0.16.*",),
}


@nox.session(python="3.12")  # tokamax needs it
@nox.parametrize("package", [nox.param(name, id=name) for name in (*PUBLISHED_TESTS, *PUBLISHED_PROGRAMS)])
def published(session: nox.Session, package: str) -> None:
    """A published package as it is, with jaxtf in the place of jax2tf: `python3 run.py 'published(keras_export)'`.

    Its own tests where it ships them (docs/published.md); `-- upstream` runs the same with jax2tf itself.
    """
    kind = "upstream" if "upstream" in session.posargs else "jaxtf"
    words = [word for word in session.posargs if word != "upstream"]
    ours, programs = from_tree("convert[jax]", "calltf"), ROOT / "tests" / "published"
    if package in PUBLISHED_TESTS:
        requirements, files, variables = PUBLISHED_TESTS[package]
        install(session, *ours, *requirements, *PYTEST)
        where = session.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", silent=True)
        paths = [str(Path(where.strip(), file)) for file in files]
        # With none of their settings, and none of ours: their warnings are not errors.
        settings = ("-c", os.devnull, "--rootdir", where.strip(), "-p", "no:cacheprovider", "-q")
        plugin = ("-p", "with_jaxtf") if kind == "jaxtf" else ()
        variables = {**ON_CPU, **variables, "PYTHONPATH": str(programs)}
        session.run("pytest", *settings, *plugin, *paths, *words, env=variables)
        return
    install(session, *ours, *PUBLISHED_PROGRAMS[package])
    if package == "tensorflowjs_jax":
        if not shutil.which("npm"):
            session.error("published(tensorflowjs_jax) needs npm: apt-get install npm")
        session.run("uv", "pip", "install", "--no-deps", *TENSORFLOWJS, external=True)
    variables = {**ON_CPU, "KERAS_BACKEND": "jax"}
    session.run("python", str(programs / f"{package}.py"), kind, session.create_tmp(), env=variables)


RAY = "ray[data,serve]==2.60.*"


@nox.session
def ray(session: nox.Session) -> None:
    """Batches with Ray Data, HTTP with Ray Serve, over a SavedModel (without JAX) and an artifact (examples/ray).

    On a cluster of its own; `python3 run.py ray -- --address HOST:PORT` on one that runs.
    """
    digits, example, out = Path("examples", "digits"), Path("examples", "ray"), Path("build", "ray")
    shutil.rmtree(out, ignore_errors=True)
    # Compiled, because Ray starts many processes, and waits half a minute for each.
    install(session, "--compile-bytecode", *from_tree("convert[jax]"), "scikit-learn", "rich", RAY)
    serving = environment(session, "serving", "--compile-bytecode", "tensorflow", RAY)
    for script in (digits / "train.py", digits / "save.py", example / "export.py"):
        session.run("python", str(script), str(out), env=ON_CPU)
    for script in ("batch.py", "serve.py"):
        for python, kind in ((serving, "savedmodel"), ("python", "artifact")):
            arguments = (str(example / script), kind, str(out), *session.posargs)
            session.run(python, *arguments, env=ON_CPU, external=True)


@nox.session(python="3.12")
def archive(session: nox.Session) -> None:
    """A function exported by JAX 0.10.2, verified, described, run from its file by the newest (examples/archive)."""
    example, out = ROOT / "examples" / "archive", ROOT / "build" / "archive"
    shutil.rmtree(out, ignore_errors=True)
    install(session, *from_tree("convert[jax]"), "jax==0.10.2", "jaxlib==0.10.2")
    session.run("python", str(example / "export.py"), str(out), env=ON_CPU)
    session.run("jaxtf-artifact", "check", str(out / "model.jaxtf"), env=ON_CPU)
    session.run("jaxtf-verify", str(out / "model.jaxtf"), env=ON_CPU)
    without_jax = environment(session, "without-jax", *from_tree("serialization"))
    newest = environment(session, "newest", *from_tree("serialization[jax]"))
    with session.chdir(session.create_tmp()):  # so that nothing of the program that exported can be imported
        session.run(without_jax, str(example / "look.py"), str(out), env=ON_CPU, external=True)
        session.run(newest, str(example / "run.py"), str(out), env=ON_CPU, external=True)


# --- reading the code ---


@nox.session
def lint(session: nox.Session) -> None:
    """Linter, formatter and workflows; `python3 run.py lint -- --fix` corrects what can be corrected."""
    install(session, RUFF, *WORKFLOW_LINTERS)
    if "--fix" in session.posargs:
        session.run("ruff", "check", "--fix", ".")
        session.run("ruff", "format", ".")
    else:
        session.run("ruff", "check", ".")
        session.run("ruff", "format", "--check", ".")
    workflows = sorted(map(str, ROOT.glob(".github/workflows/*.yml")))
    schemas = {"github-workflows": workflows, "citation-file-format": ["CITATION.cff"]}
    for schema, files in schemas.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    session.run("zizmor", "--offline", "--pedantic", "--no-progress", "--quiet", *workflows)


@nox.session
def types(session: nox.Session) -> None:
    """Strict types of the four packages, and what callers of them see."""
    install(session, *from_tree(*EVERYTHING), MYPY, *PYTEST)
    session.run("mypy", *(f"packages/{package}/src" for package in PACKAGES), "tests/types")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, warnings being errors; every example in pages, READMEs, notebooks and docstrings, with what it prints.

    `python3 run.py docs -- --site` builds the site alone, `-- docs/convert.md` runs the examples of that page.
    """
    install(session, *from_tree(*EVERYTHING), *MKDOCS, *PYTEST, *NOTEBOOKS, *LIBRARIES)
    if session.posargs and "--site" not in session.posargs:
        session.run("python", "tools/run_examples.py", *session.posargs, env=ON_CPU)
        return
    build_site(session)
    if "--site" in session.posargs:
        return
    session.run("python", "tools/run_examples.py", *pages(), env=ON_CPU)
    session.run("python", "tools/run_notebook.py", *map(str, ROOT.glob("docs/*.ipynb")), env=ON_CPU)
    session.run("pytest", "--doctest-modules", *(f"packages/{name}/src" for name in PACKAGES), env=ON_CPU)


@nox.session
def site(session: nox.Session) -> None:
    """Every page of the site in headless Chromium, on a desk and on a phone: console, links, search, width.

    Screenshots are in build/site; people look at them.
    """
    if not shutil.which("chromium"):
        session.error("site needs Chromium: there is no chromium on PATH (Debian: apt-get install chromium)")
    install(session, *MKDOCS, "playwright>=1.50")
    build_site(session)
    session.run("python", "tools/check_site.py", "site", "build/site")


def build_site(session: nox.Session) -> None:
    no_advertisement = {"NO_MKDOCS_2_WARNING": "1"}
    session.run("mkdocs", "build", "--strict", "--site-dir", str(ROOT / "site"), env=no_advertisement)


def pages() -> list[str]:
    found = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("packages/*/README.md")]
    return sorted(str(page.relative_to(ROOT)) for page in found)


# --- the distributions ---


@nox.session(reuse_venv=False)
def build(session: nox.Session) -> None:
    """Wheels and source distributions; each wheel alone in a clean environment runs its README; then all together.

    The command `jaxtf-artifact` runs where there is no JAX.
    """
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    for package in PACKAGES:
        session.run("uv", "build", "--quiet", "--out-dir", str(dist), f"packages/{package}", external=True)
    session.run("python", "tools/check_wheels.py", str(dist))
    check = str(ROOT / "tools" / "run_examples.py")
    elsewhere = session.create_tmp()  # so that nothing can be imported from the tree
    for package in PACKAGES:
        extra = "[jax]" if package in EXAMPLES_NEED_JAX else ""
        python = environment(session, package, *wheels(package + extra, *siblings(package)))
        with session.chdir(elsewhere):
            session.run(
                python, check, "--required", str(ROOT / "packages" / package / "README.md"), env=ON_CPU, external=True
            )
    python = environment(session, "artifact", *wheels("serialization", *siblings("serialization")))
    session.run(python, "-c", "from importlib.util import find_spec; assert not find_spec('jax')", external=True)
    artifact = ROOT / "packages" / "serialization" / "tests" / "artifacts" / "0.4.30" / "symbolic_batch.bin"
    for command in ("describe", "check"):
        session.run(str(Path(python).with_name("jaxtf-artifact")), command, str(artifact), external=True)
    python = environment(session, "together", *wheels(*PACKAGES))
    with session.chdir(elsewhere):
        names = ", ".join(f"jaxtf.{package}" for package in PACKAGES)
        session.run(python, "-c", f"import {names}; print('together:', {names})", env=ON_CPU, external=True)


@nox.session
def sizes(session: nox.Session) -> None:
    """What each package, alone with its needs, takes on disk and at import; writes docs/install_size.md."""
    dist = Path(session.create_tmp()).resolve() / "wheels"
    for package in PACKAGES:
        session.run("uv", "build", "--quiet", "--wheel", "--out-dir", str(dist), f"packages/{package}", external=True)
    variants = [f"{name}{extra}" for name in PACKAGES for extra in ("", *(f"[{extra}]" for extra in extras(name)))]
    pythons = []
    for variant in variants:
        needed = wheels(variant, *siblings(variant.partition("[")[0]), dist=dist)
        pythons.append(f"{variant}={environment(session, variant.replace('[', '-').rstrip(']'), *needed)}")
    session.run("python", "tools/measure_install.py", *pythons)


@nox.session
def release(session: nox.Session) -> None:
    """Whether a package can be released from this commit, and its tag: `python3 run.py release -- serialization`.

    Its changelog, version and tag; that its version announces what breaks callers since the newest release; its wheel
    and source distribution, which a clean environment installs and whose README it runs; its metadata, as the package
    index reads it. They are left in build/release, and the tag is made, which is to be pushed. With `--dry-run` what
    keeps it from being a release is listed only, and there is no tag.
    """
    dry = "--dry-run" in session.posargs
    words = [word for word in session.posargs if word != "--dry-run"]
    package = words[0].partition("-v")[0] if len(words) == 1 else ""
    if package not in PACKAGES:
        session.error(f"say what to release: `python3 run.py release -- NAME [--dry-run]`, of {', '.join(PACKAGES)}")
    install(session, "twine>=6", GRIFFE)
    codes = [0, 1] if dry else [0]
    for tool in ("release", "api_changes"):
        session.run("python", f"tools/{tool}.py", package, success_codes=codes)
    dist, released = ROOT / "dist", ROOT / "build" / "release"
    for folder in (dist, released):
        shutil.rmtree(folder, ignore_errors=True)
    for name in (package, *siblings(package)):
        session.run("uv", "build", "--quiet", "--out-dir", str(dist), f"packages/{name}", external=True)
    built = sorted(dist.glob(f"jaxtf_{package}-*"))
    session.run("twine", "check", "--strict", *map(str, built))
    extra = "[jax]" if package in EXAMPLES_NEED_JAX else ""
    [source] = dist.glob(f"jaxtf_{package}-*.tar.gz")
    sources = f"jaxtf-{package}{extra} @ {source.as_uri()}"
    check = str(ROOT / "tools" / "run_examples.py")
    elsewhere = session.create_tmp()
    for kind, requirement in (("wheel", wheels(package + extra)[0]), ("source", sources)):
        python = environment(session, kind, requirement, *wheels(*siblings(package)))
        with session.chdir(elsewhere):
            readme = str(ROOT / "packages" / package / "README.md")
            session.run(python, check, "--required", readme, env=ON_CPU, external=True)
    released.mkdir(parents=True)
    for file in built:
        shutil.copy(file, released)
    if not dry:
        session.run("python", "tools/release.py", "--tag", package)


@nox.session(name="siblings")
def siblings_released(session: nox.Session) -> None:
    """Packages from the tree with the newest tagged releases of the others, and the reverse.

    A user's pin keeps working: `convert` and `calltf` of the tree run their tests with the released `serialization` and
    `shapepoly`, and the released ones theirs with those of the tree.
    """
    released = {name: newest_release(session, name) for name in PACKAGES}
    if not any(released.values()):
        session.error("no release of any package is tagged (PACKAGE-vVERSION); there is nothing to run together")
    low, high = ("shapepoly", "serialization"), ("convert", "calltf")
    for pinned, newer in ((low, high), (high, low)):
        if not all(released[name] for name in pinned):
            session.log("%s are not all released: skipped", ", ".join(pinned))
            continue
        trees = [str(released[name] / "packages" / name) for name in pinned]
        trees += [str(ROOT / "packages" / name) for name in newer]
        extra = {"shapepoly": "[jax]", "convert": "[jax]"}
        editable = [argument for tree in trees for argument in ("--editable", tree + extra.get(Path(tree).name, ""))]
        install(session, *editable, *PYTEST)
        for tree in map(Path, trees):
            if tree.name in high:
                session.run("pytest", str(tree / "tests"), env=ON_CPU)


def newest_release(session: nox.Session, package: str) -> Path | None:
    """A folder with the tree of the newest release of a package; None if there is none."""
    found = session.run("python", "tools/release.py", "--newest", package, silent=True, success_codes=[0, 1])
    tag = found.strip() if found else ""
    if not tag.startswith(f"{package}-v"):
        return None
    folder = Path(session.create_tmp()) / tag
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = folder.with_suffix(".tar")
    session.run("git", "archive", "--output", str(archive), tag, external=True)
    session.run("tar", "-xf", str(archive), "-C", str(folder), external=True)
    return folder


@nox.session
def bench(session: nox.Session) -> None:
    """What things cost, compared with the bare op and with upstream; prints tables, never fails.

    `python3 run.py bench -- --page` writes docs/benchmarks.md with them.
    """
    install(session, *from_tree(*EVERYTHING), "matplotlib>=3.9")
    if "--page" in session.posargs:
        session.run("python", "tools/bench_page.py", env=ON_CPU)
        return
    for script in sorted(ROOT.glob("benchmarks/bench_*.py")):
        session.run("python", str(script), *session.posargs, env=ON_CPU)


# --- helpers ---


def in_ci(part: int, count: int) -> tuple[str, ...]:
    """Words for pytest: in CI a part of the tests, always the same; elsewhere all of them."""
    return ("--sample", f"{part}/{count}") if "CI" in os.environ else ()


def extras(package: str) -> dict[str, list[str]]:
    return pyproject(package).get("optional-dependencies", {})


def wheels(*packages: str, dist: Path = ROOT / "dist") -> list[str]:
    """Installer arguments for the packages' wheels in `dist`, such as `convert[jax]`; no index may offer another."""
    found = []
    for package in packages:
        [wheel] = dist.glob(f"jaxtf_{package.partition('[')[0]}-*.whl")
        found.append(f"jaxtf-{package} @ {wheel.as_uri()}")
    return found


def from_tree(*packages: str) -> list[str]:
    """Installer arguments for the packages, such as `convert[jax]`, and those of ours that they need, editable."""
    needed = dict.fromkeys(packages)
    for package in packages:
        for sibling in siblings(package.partition("[")[0]):
            if not any(other.partition("[")[0] == sibling for other in needed):
                needed[sibling] = None
    return [argument for package in needed for argument in ("--editable", str(ROOT / "packages" / package))]


def siblings(package: str) -> list[str]:
    """The packages of ours that this one needs, extras included, however far."""
    requirements = [
        *pyproject(package)["dependencies"],
        *(need for group in extras(package).values() for need in group),
    ]
    direct = [name for name in PACKAGES if name != package and any(f"jaxtf-{name}" in text for text in requirements)]
    return list(dict.fromkeys([*direct, *(further for name in direct for further in siblings(name))]))


def install(session: nox.Session, *arguments: str) -> None:
    """Installs with the installer's progress shown, except in CI."""
    session.install(*arguments, silent="CI" in os.environ)


def environment(session: nox.Session, name: str, *arguments: str) -> str:
    """A second, clean environment in addition to the session's own; the path of its interpreter."""
    home = Path(session.virtualenv.location).with_name(f"{Path(session.virtualenv.location).name}-{name}")
    session.run("uv", "venv", "--quiet", "--clear", "--python", session.virtualenv.location, str(home), external=True)
    python = str(home / "bin" / "python")
    silent = "CI" in os.environ
    session.run("uv", "pip", "install", "--python", python, *arguments, external=True, silent=silent)
    return python


# --- long runs ---


@nox.session
def sweep(session: nox.Session) -> None:
    """shapepoly's decisions against brute force in 100,000 cases (docs/shapepoly.md); more than an hour."""
    install(session, *from_tree("shapepoly"), *PYTEST)
    properties = Path("packages", "shapepoly", "tests", "properties")
    session.run("pytest", str(properties), "--durations=0", *session.posargs, env={"HYPOTHESIS_PROFILE": "sweep"})


@nox.session
def beside_jax_export(session: nox.Session) -> None:
    """Questions, programs and exports under random equalities, against brute force and `jax.export`: 2,000 of each.

    A word after `--` is another number. Most of the time, half an hour or more for 2,000, goes to the exports.
    """
    install(session, *from_tree("serialization[jax]"), *PYTEST)
    env = ON_CPU | {"BESIDE_JAX_EXPORT": (session.posargs or ["2000"])[0]}
    session.run("pytest", "packages/shapepoly/tests/with_jax/test_beside_jax_export.py", env=env)
    session.run("pytest", "tests/test_exports_under_equalities.py", env=env)


@nox.session
def artifacts(session: nox.Session) -> None:
    """Old JAX releases, each in its own environment, write the corpus again; it is compared with the frozen one.

    Words after `--` are releases; by default all of them. Frozen files are never rewritten.
    """
    frozen = ROOT / "packages" / "serialization" / "tests" / "artifacts"
    described = runpy.run_path(str(frozen / "releases.py"))
    generate, made = str(frozen / "generate.py"), Path(session.create_tmp()) / "corpus"
    shutil.rmtree(made, ignore_errors=True)
    different = []
    for release in session.posargs or described["RELEASES"]:
        version, requirements = described["RELEASES"][release]
        home = Path(session.virtualenv.location).with_name(f"artifacts-{release}")
        session.run("uv", "venv", "--quiet", "--clear", "--python", version, str(home), external=True)
        python = str(home / "bin" / "python")
        needs = (*requirements, *described["ALWAYS_INSTALLED"])
        session.run("uv", "pip", "install", "--quiet", "--python", python, *needs, external=True)
        session.run(python, generate, "write", str(made), env=ON_CPU, external=True)
        try:
            session.run(python, generate, "compare", str(made / release), str(frozen / release), external=True)
        except CommandFailed:
            different.append(release)
    if different:
        session.error(f"not as frozen: {', '.join(different)}")
