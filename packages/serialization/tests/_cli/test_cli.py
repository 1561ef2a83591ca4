"""The command line, as its users run it: what it prints, and with which exit code."""

import dataclasses
import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import time
from collections import OrderedDict
from pathlib import Path
from random import Random

import pytest

from jaxtf.serialization import describe
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._cli.program import main
from jaxtf.serialization._container import whole_file

CORPUS = Path(__file__).parent.parent / "artifacts"
SYMBOLIC = str(CORPUS / "0.12.0.1" / "vjp_symbolic.bin")
STATIC = str(CORPUS / "0.12.0.1" / "vjp_2.bin")
CHECKS = ["digest", "structure", "model", "record", "calls"]
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="parses modules")


def run(capsys, *arguments):
    """Exit code, standard output, standard error."""
    code = main(arguments)
    return code, *capsys.readouterr()


def test_describe_prints_what_describe_returns(capsys):
    code, out, _ = run(capsys, "describe", SYMBOLIC)
    assert (code, out) == (0, f"{describe(Path(SYMBOLIC).read_bytes())}\n")


def test_describe_json_is_one_object_for_each_file(capsys):
    code, out, _ = run(capsys, "describe", "--json", SYMBOLIC, STATIC)
    assert code == 0
    assert [item["file"] for item in json.loads(out)] == [SYMBOLIC, STATIC]
    assert json.loads(out)[0]["functions"][0]["arguments"][0]["shape"] == ["b", "n"]


def test_a_dash_is_standard_input(capsys, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(Path(STATIC).read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert run(capsys, "describe", "-")[0] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "reaches past the end of its 0 bytes"), (b"PK\3\4" * 50, "a reference leads to byte 67324752 of 200")],
)
def test_what_is_not_an_artifact_is_one_message_and_code_2(capsys, tmp_path, content, message):
    (tmp_path / "a.bin").write_bytes(content)
    code, out, err = run(capsys, "describe", str(tmp_path / "a.bin"))
    assert (code, out) == (2, "")
    assert err.startswith(f"jaxtf-artifact: {tmp_path / 'a.bin'}: not an artifact, or a damaged one: ")
    assert message in err


def test_a_file_that_is_not_there_is_one_message_and_code_2(capsys):
    assert run(capsys, "describe", "absent.bin") == (2, "", "jaxtf-artifact: absent.bin: No such file or directory\n")


def test_check_tells_each_thing_that_was_checked(capsys):
    code, out, _ = run(capsys, "check", "--no-parse", STATIC)
    assert code == 0
    assert [line.removeprefix(f"{STATIC}: ") for line in out.splitlines()] == [
        "digest    ok (there is none: not written by jaxtf)",
        "structure ok (3 modules)",
        "model     ok",
        "record    ok",
        "calls     ok",
    ]


def test_check_tells_that_modules_are_not_parsed_without_jax(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    code, out, _ = run(capsys, "check", STATIC)
    assert code == 0
    assert [line.removeprefix(f"{STATIC}: ") for line in out.splitlines()] == [
        "digest    ok (there is none: not written by jaxtf)",
        "structure ok (3 modules)",
        "model     ok",
        "record    ok",
        "calls     ok",
        "modules   not parsed (JAX is not installed)",
    ]
    code, out, _ = run(capsys, "check", "--json", STATIC)
    assert [check["what"] for check in json.loads(out)["files"][0]["checks"]] == CHECKS


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["extract", "--text", STATIC], "extract --text"),
        (["upgrade", STATIC, "-o", "-", "--stablehlo-version", "1.13.7"], "upgrade --stablehlo-version"),
        (["upgrade", STATIC, "-o", "-", "--tensorflow-version", "2.21"], "upgrade --tensorflow-version"),
    ],
)
def test_a_command_that_needs_jax_says_so(capsys, monkeypatch, arguments, wanted):
    monkeypatch.setitem(sys.modules, "jax", None)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"jaxtf-artifact: {STATIC}: {wanted} needs JAX, which cannot be imported here: "
        "import of jax halted; None in sys.modules",
        '  remedy: pip install "jaxtf-serialization[jax]"',
    ]


def test_check_tells_damage_with_code_1(capsys, tmp_path):
    assert main(["upgrade", STATIC, "-o", str(tmp_path / "a.bin")]) == 0
    blob = bytearray((tmp_path / "a.bin").read_bytes())
    blob[100] ^= 1
    (tmp_path / "a.bin").write_bytes(blob)
    code, out, _ = run(capsys, "check", "--no-parse", str(tmp_path / "a.bin"))
    assert code == 1
    assert "digest    WRONG: the artifact is damaged" in out


@needs_jax
@pytest.mark.parametrize("vouched", [True, False])
def test_check_tells_custom_calls_without_guarantees(capsys, tmp_path, vouched):
    import jax
    import numpy as np

    from jaxtf.serialization import DisabledSafetyCheck, export
    from jaxtf.serialization._artifact.reader import read_payload
    from jaxtf.serialization._artifact.trailer import append_trailer, split_trailer
    from jaxtf.serialization._artifact.writer import write_payload

    spec, file = jax.ShapeDtypeStruct((3,), np.float32), tmp_path / "calls.bin"
    checks = [DisabledSafetyCheck.custom_call("a_target_of_mine")]
    split = split_trailer(export(jax.ffi.ffi_call("a_target_of_mine", spec), disabled_checks=checks)(spec).serialize())
    payload = split.payload
    if not vouched:
        payload = write_payload(dataclasses.replace(read_payload(payload), disabled_checks=None))
    blob = bytearray(payload)
    append_trailer(blob, split.notes)
    file.write_bytes(blob)
    code, out, _ = run(capsys, "check", "--no-parse", str(file))
    assert code == (0 if vouched else 1)
    assert out.splitlines()[-1].removeprefix(f"{file}: ") == (
        "calls     ok (the exporter vouched for a_target_of_mine)"
        if vouched
        else "calls     WRONG: custom calls whose targets have no compatibility guarantees: a_target_of_mine"
    )


def test_check_solves_shapes_and_tells_those_of_the_results(capsys):
    shapes = ("--shapes", "args[0]=3,4", "--shapes", "args[1]=4,4")
    code, out, _ = run(capsys, "check", "--no-parse", "--json", *shapes, SYMBOLIC)
    assert code == 0
    assert json.loads(out)["files"][0]["checks"][-1] == {"what": "shapes", "remark": "result=3,4", "found": None}


def test_check_tells_shapes_that_do_not_fit_with_code_1(capsys):
    shapes = ("--shapes", "args[0]=3,4", "--shapes", "args[1]=4,5")
    code, out, _ = run(capsys, "check", "--no-parse", *shapes, SYMBOLIC)
    assert code == 1
    assert "dimension size args[1].shape[1] (= 5)" in out


@pytest.mark.parametrize("shapes", ["args[0]", "args[0]=3,x"])
def test_shapes_that_cannot_be_read_are_usage_errors(capsys, shapes):
    code, _, err = run(capsys, "check", "--no-parse", "--shapes", shapes, SYMBOLIC)
    assert code == 2
    assert "--shapes" in err


def test_what_is_given_twice_for_one_name_is_refused(capsys):
    code, _, err = run(capsys, "check", "--no-parse", "--shapes", "args[0]=3,4", "--shapes", "args[0]=5,4", SYMBOLIC)
    assert code == 2
    assert "--shapes: 'args[0]' is given twice" in err
    code, _, err = run(capsys, "cost", "--size", "n=2,3", "--size", "n=5", SYMBOLIC)
    assert code == 2
    assert "--size: 'n' is given twice" in err


def test_shapes_of_other_arguments_are_wrong_for_the_file(capsys):
    code, out, _ = run(capsys, "check", "--no-parse", "--shapes", "args[7]=3", SYMBOLIC)
    assert code == 1
    assert out.startswith(
        f"{SYMBOLIC}: file      WRONG: --shapes: give one for each of args[0], args[1]; found args[7]"
    )


@needs_jax
def test_check_parses_modules_without_dying_of_a_crash_in_mlir(capsys, tmp_path):
    blob = bytearray(Path(STATIC).read_bytes())
    module = bytes(read_payload(blob := bytes(blob)).mlir_module_serialized)
    changed = bytearray(blob)
    start = blob.index(module)
    changed[start + len(module) // 2] ^= 0x55
    (tmp_path / "a.bin").write_bytes(changed)
    code, out, _ = run(capsys, "check", str(tmp_path / "a.bin"))
    assert code in {0, 1}
    assert "digest    ok (there is none: not written by jaxtf)" in out


def test_diff_of_a_file_with_itself_is_empty(capsys):
    assert run(capsys, "diff", STATIC, STATIC) == (0, "", "")


def test_diff_tells_each_field_with_code_1(capsys):
    code, out, _ = run(capsys, "diff", "--json", SYMBOLIC, STATIC)
    assert code == 1
    assert json.loads(out)["functions[0].arguments[0].shape"] == {"left": ["b", "n"], "right": [3]}


def test_diff_tells_a_vjp_that_one_file_lacks_once(capsys):
    three, one = STATIC, str(CORPUS / "0.12.0.1" / "elementary.bin")
    code, out, _ = run(capsys, "diff", three, one)
    assert code == 1
    lines = out.splitlines()
    for order in (1, 2):
        place = lines.index(f"functions[{order}]")
        assert lines[place + 1].startswith(f"  {three}: ")
        assert lines[place + 2] == f"  {one}: nothing"
    assert not any(line.startswith("functions[1].") for line in lines)


@needs_jax
@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        ((1.0, 1.0), [1.0, 1.0], ["((*, *))", "([*, *])"]),
        ({"a": {}, "b": 1.0}, {"a": (), "b": 1.0}, ["({'a': {}, 'b': *})", "({'a': (), 'b': *})"]),
        (1.0, {}, None),
        (OrderedDict(a=1.0), {"a": 1.0}, ['(collections.OrderedDict[["a"]](*))', "({'a': *})"]),
    ],
)
def test_diff_shows_another_structure_of_the_same_arrays(one, other, texts, capsys, tmp_path):
    import jax.export

    files = []
    for value in (one, other):
        exported = jax.export.export(jax.jit(lambda tree: 1.0))(value)
        files.append(tmp_path / f"{len(files)}.bin")
        files[-1].write_bytes(exported.serialize())
    code, out, _ = run(capsys, "diff", *map(str, files))
    assert code == 1
    if texts is not None:
        place = out.splitlines().index("functions[0].in_tree")
        assert out.splitlines()[place + 1 : place + 3] == [
            f"  {file}: ({text}, {{}})" for file, text in zip(files, texts, strict=True)
        ]


def test_upgrade_adds_a_trailer_and_keeps_the_rest(capsys, tmp_path):
    out = tmp_path / "new.bin"
    assert run(capsys, "upgrade", str(CORPUS / "0.4.30" / "vjp_2.bin"), "-o", str(out))[0] == 0
    before, after = describe((CORPUS / "0.4.30" / "vjp_2.bin").read_bytes()), describe(out.read_bytes())
    assert (before.formats[0], after.formats, after.digest) == (2, (12, 12), "verified")
    assert after.functions == before.functions


def test_upgrade_over_a_file_keeps_the_mode_and_a_link(capsys, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"before")
    (tmp_path / "a.bin").chmod(0o640)
    (tmp_path / "link.bin").symlink_to("a.bin")
    link = str(tmp_path / "link.bin")
    assert run(capsys, "upgrade", STATIC, "-o", link, "--force")[0] == 0
    assert (tmp_path / "link.bin").is_symlink()
    assert (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o640
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.bin", "link.bin"]


def test_a_full_disk_leaves_the_file(capsys, tmp_path, monkeypatch):
    file = tmp_path / "a.bin"
    file.write_bytes(b"before")

    def full(_):
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(whole_file.os, "fsync", full)
    code, _, err = run(capsys, "upgrade", STATIC, "-o", str(file), "--force")
    assert (code, err) == (2, f"jaxtf-artifact: {file}: No space left on device\n")
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("command", ["upgrade", "extract"])
def test_a_command_says_what_it_wrote(capsys, tmp_path, command):
    out = tmp_path / "out"
    _, printed, err = run(capsys, command, STATIC, "-o", str(out))
    content = out.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert (printed, err) == ("", f"wrote {out}: {len(content):,} bytes, sha256 {digest}\n")


@pytest.mark.parametrize("command", ["upgrade", "extract"])
def test_a_file_that_exists_is_overwritten_only_if_asked_for(capsys, tmp_path, command):
    out = tmp_path / "out"
    out.write_bytes(b"before")
    code, _, err = run(capsys, command, STATIC, "-o", str(out))
    assert (code, err) == (2, f"jaxtf-artifact: {out}: the file exists\n  remedy: --force overwrites it\n")
    assert out.read_bytes() == b"before"
    assert run(capsys, command, STATIC, "-o", str(out), "--force")[0] == 0
    assert out.read_bytes() != b"before"


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 2)])
def test_at_a_terminal_it_is_asked_for(capsys, tmp_path, monkeypatch, answer, code):
    out = tmp_path / "out"
    out.write_bytes(b"before")
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    found, _, err = run(capsys, "upgrade", STATIC, "-o", str(out))
    assert found == code
    assert err.startswith(f"{out} exists. Overwrite it? [y/N] ")
    assert (out.read_bytes() == b"before") == bool(code)


@pytest.mark.parametrize("words", [["upgrade"], ["upgrade", "--force"], ["extract", "--force"]])
def test_a_command_refuses_its_own_input(capsys, tmp_path, words):
    file, link = tmp_path / "a.bin", tmp_path / "link.bin"
    file.write_bytes(Path(STATIC).read_bytes())
    link.symlink_to("a.bin")
    code, _, err = run(capsys, *words, str(file), "-o", str(link))
    assert (code, file.read_bytes()) == (2, Path(STATIC).read_bytes())
    assert err == (
        f"jaxtf-artifact: {link}: this is the input, which is not overwritten\n  remedy: write to another file\n"
    )


@pytest.mark.parametrize("words", [["extract"], ["upgrade", "-o", "-"]])
def test_bytes_are_not_written_to_a_terminal(capsys, monkeypatch, words):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    code, out, err = run(capsys, *words, STATIC)
    assert (code, out) == (2, "")
    assert err.startswith("jaxtf-artifact: -: binary data is not written to a terminal\n")


def test_of_several_files_each_is_reported(capsys, tmp_path):
    (tmp_path / "bad.bin").write_bytes(b"PK")
    files = [str(tmp_path / "bad.bin"), str(tmp_path / "absent.bin"), STATIC]
    code, out, err = run(capsys, "describe", *files)
    assert code == 2
    assert out.endswith(f"{STATIC}\n{describe(STATIC)}\n")
    assert [line for line in err.splitlines() if line.startswith("jaxtf-artifact: ")] == [
        f"jaxtf-artifact: {files[0]}: not an artifact, or a damaged one: a reference reaches past the end of its 2 "
        "bytes",
        f"jaxtf-artifact: {files[1]}: No such file or directory",
    ]
    code, out, _ = run(capsys, "describe", "--json", *files)
    assert code == 2
    assert [sorted({"error", "functions"} & report.keys()) for report in json.loads(out)] == [
        ["error"],
        ["error"],
        ["functions"],
    ]
    code, out, _ = run(capsys, "check", "--no-parse", *files)
    assert code == 1
    assert f"{files[0]}: digest    ok" in out or f"{files[0]}: structure WRONG" in out
    assert f"{files[1]}: file      WRONG: No such file or directory\n" in out
    assert f"{STATIC}: calls     ok\n" in out


SMALL_MEMORY = """
import resource, sys
from jaxtf.serialization._cli.program import main
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory, sparse files")
@pytest.mark.parametrize("size", [2**31, 30 * 2**30], ids=["2G", "30G"])
def test_a_large_file_that_is_not_an_artifact_is_an_error_in_little_memory(tmp_path, size):
    file = tmp_path / "sparse.bin"
    with open(file, "wb") as opened:
        opened.truncate(size)
    for command, code in (("describe", 2), ("check", 1)):
        arguments = [sys.executable, "-c", SMALL_MEMORY, command, str(file)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert f"{file}: " in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="devices")
def test_what_has_no_end_is_refused():
    program = "import sys; from jaxtf.serialization._cli.program import main; sys.exit(main(sys.argv[1:]))"
    run_of = [sys.executable, "-c", program, "describe"]
    done = subprocess.run([*run_of, "/dev/zero"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "jaxtf-artifact: /dev/zero: this is a terminal or a device, which may have no end",
    )
    with subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as endless:
        done = subprocess.run([*run_of, "-"], stdin=endless.stdout, capture_output=True, text=True, check=False)
        endless.stdout.close()
    assert done.returncode == 2
    assert "it begins with the number 0" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="pipes")
def test_a_closed_pipe_is_not_a_usage_error():
    program = "import sys; from jaxtf.serialization._cli.program import main; sys.exit(main(sys.argv[1:]))"
    arguments = [sys.executable, "-c", program, "describe", *[SYMBOLIC] * 50]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_check_lists_custom_calls_if_asked_for(capsys):
    code, out, _ = run(capsys, "check", "--no-parse", "--allow-custom-calls", SYMBOLIC, STATIC)
    assert code == 0
    assert f"{SYMBOLIC}: calls     ok (it calls shape_assertion)" in out
    assert f"{STATIC}: calls     ok (it calls nothing outside)" in out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_upgrade_writes_to_what_is_not_a_file_as_it_is(capsys):
    assert run(capsys, "upgrade", STATIC, "-o", os.devnull)[0] == 0
    assert not Path(os.devnull).is_file()


# Each writes FILE again and again until it is killed. What the first writes is larger than a write of the system.
LARGE = """
for n in itertools.count():
    write(sys.argv[1], bytes([n % 251]) * ((8 << 20) + n % 251))
    print(n, flush=True)
"""
UPGRADES = """
while True:
    assert main(["upgrade", sys.argv[2], "-o", sys.argv[1], "--force"]) == 0
    print(flush=True)
"""


@pytest.mark.slow(1)
@pytest.mark.parametrize("loop", [LARGE, UPGRADES])
def test_a_command_that_is_killed_leaves_a_whole_file(capsys, tmp_path, loop):
    rounds = 100 if os.environ.get("JAXTF_FULL") == "1" else 8
    random = Random(0)
    file, old, upgraded = tmp_path / "a.bin", CORPUS / "0.4.30" / "vjp_2.bin", tmp_path / "upgraded.bin"
    assert run(capsys, "upgrade", str(old), "-o", str(upgraded))[0] == 0
    imports = (
        "import itertools, sys\n"
        "from jaxtf.serialization._cli.program import main\n"
        "from jaxtf.serialization._cli.files import write\n"
    )
    for _ in range(rounds):
        file.write_bytes(old.read_bytes())
        arguments = [sys.executable, "-c", imports + loop, str(file), str(old)]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(random.randint(1, 3)):
            process.stdout.readline()
        time.sleep(random.uniform(0, 0.03))
        process.kill()
        process.communicate()
        content = file.read_bytes()
        if loop is UPGRADES:
            assert content in (old.read_bytes(), upgraded.read_bytes())
        else:
            assert set(content) == {len(content) - (8 << 20)}


@needs_jax
def test_upgrade_writes_for_another_stablehlo_version(capsys, tmp_path):
    out = tmp_path / "new.bin"
    source = str(CORPUS / "0.10.2" / "vjp_2.bin")
    assert run(capsys, "upgrade", source, "-o", str(out), "--stablehlo-version", "1.13.7")[0] == 0
    assert [function.stablehlo_version for function in describe(out.read_bytes()).functions] == ["1.13.7"] * 3


@needs_jax
def test_upgrade_writes_for_a_tensorflow(capsys, tmp_path):
    out = tmp_path / "new.bin"
    source = str(CORPUS / "0.10.2" / "vjp_2.bin")
    assert run(capsys, "upgrade", source, "-o", str(out), "--tensorflow-version", "2.21")[0] == 0
    assert [function.stablehlo_version for function in describe(out.read_bytes()).functions] == ["1.13.7"] * 3


@needs_jax
def test_upgrade_refuses_a_tensorflow_that_is_none_and_two_consumers(capsys, tmp_path):
    out = tmp_path / "new.bin"
    code, _, err = run(capsys, "upgrade", STATIC, "-o", str(out), "--tensorflow-version", "new")
    assert (code, out.exists()) == (2, False)
    assert err == (
        f"jaxtf-artifact: {STATIC}: tensorflow_version must be the version of a TensorFlow release, such as '2.20'. "
        "Got: 'new'\n"
    )
    with pytest.raises(SystemExit):
        run(capsys, "upgrade", STATIC, "-o", str(out), "--tensorflow-version", "2.21", "--stablehlo-version", "1.9.0")
    assert "not allowed with argument --tensorflow-version" in capsys.readouterr().err


def test_upgrade_to_an_older_format_is_reported_by_its_fields(capsys, tmp_path):
    out = tmp_path / "old.bin"
    assert run(capsys, "upgrade", STATIC, "-o", str(out), "--format-version", "2")[0] == 0
    assert describe(out.read_bytes()).stored_format == 2


def test_extract_writes_the_module(capsys, tmp_path):
    out = tmp_path / "module"
    assert run(capsys, "extract", STATIC, "--vjp", "1", "-o", str(out))[0] == 0
    assert out.read_bytes() == read_payload(Path(STATIC).read_bytes()).vjp.mlir_module_serialized


@needs_jax
def test_extract_text_is_stablehlo(tmp_path):
    out = tmp_path / "module"
    assert main(["extract", str(CORPUS / "0.10.2" / "vjp_2.bin"), "--text", "-o", str(out)]) == 0
    assert "stablehlo." in out.read_text()


def test_an_order_of_vjp_that_was_not_written_is_refused(capsys):
    code, _, err = run(capsys, "extract", STATIC, "--vjp", "3")
    assert (code, err) == (2, f"jaxtf-artifact: {STATIC}: it has no VJP of order 3; it has 2\n")


@pytest.mark.parametrize("command", ["describe", "check", "diff", "upgrade", "extract"])
def test_help_documents_the_exit_codes(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "exit codes:" in capsys.readouterr().out


@needs_jax
@pytest.mark.parametrize(
    "words",
    [["extract", "--text"], ["upgrade", "-o", "-", "--stablehlo-version", "1.13.7"]],
    ids=["extract", "upgrade"],
)
def test_a_parser_that_dies_takes_no_command_with_it(words, capsys, monkeypatch):
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr("jaxtf.serialization._cli.child.PARSE", dies)
    monkeypatch.setattr("jaxtf.serialization._cli.commands.PRINT", dies)
    code, _, err = run(capsys, *words, STATIC)
    assert code == 2
    assert err == f"jaxtf-artifact: {STATIC}: MLIR's parser crashes on a module, with signal 11\n"
