"""`run_without_jax`: a forked process is as one that `python` begins, and has no JAX."""

import os
import signal
import subprocess

import pytest


def test_a_program_sees_its_arguments_folder_and_module(run_without_jax, tmp_path):
    (tmp_path / "helper.py").write_text("WORD = 'beside'")
    (tmp_path / "program.py").write_text(
        "import os, sys, helper\n"
        "print(__name__, sys.argv, os.getcwd(), helper.WORD, __file__)\n"
        "assert sys.modules['__main__'].__dict__ is globals() or __name__ == '__main__'\n"
    )
    file, elsewhere = tmp_path / "program.py", tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = run_without_jax(file, "a", 1, cwd=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"__main__ {[str(file), 'a', '1']} {elsewhere} beside {file}\n"
    done = run_without_jax("-c", "import sys; print(__name__, sys.argv)", "b", cwd=tmp_path)
    assert done.stdout == "__main__ ['-c', 'b']\n"


def test_jax_and_pytest_are_not_there_and_tensorflow_runs(run_without_jax, tmp_path):
    program = (
        "import sys\n"
        "try: import jax\n"
        "except ImportError: print('no jax')\n"
        "print([name for name in sys.modules if name.startswith(('pytest', '_pytest', 'hypothesis', 'jaxtf'))])\n"
        "import tensorflow as tf\n"
        "module = tf.Module()\n"
        "module.f = tf.function(lambda x: tf.sort(x) * 2, jit_compile=True, input_signature=[tf.TensorSpec([3])])\n"
        "tf.saved_model.save(module, 'model')\n"
        "print(tf.saved_model.load('model').f(tf.constant([3.0, 1.0, 2.0])).numpy().tolist())\n"
        "print(sum(tf.data.Dataset.range(4).map(lambda x: x + 1, num_parallel_calls=2).as_numpy_iterator()))\n"
    )
    done = run_without_jax("-c", program, cwd=tmp_path)
    assert done.stdout.splitlines() == ["no jax", "[]", "[2.0, 4.0, 6.0]", "10"], done.stderr


def test_what_one_program_does_the_next_does_not_see(run_without_jax):
    change = "import os, sys, tensorflow as tf; os.environ['MARK'] = 'x'; sys.mark = tf.mark = 1"
    assert run_without_jax("-c", change).returncode == 0
    look = "import os, sys, tensorflow as tf; print('MARK' in os.environ, hasattr(sys, 'mark'), hasattr(tf, 'mark'))"
    assert run_without_jax("-c", look).stdout == "False False False\n"


@pytest.mark.parametrize(
    ("program", "code", "printed"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("raise SystemExit('no such thing')", 1, "no such thing\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("def", 1, "SyntaxError: invalid syntax\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, ""),
        ("import os; os.abort()", -signal.SIGABRT, ""),
        ("import os; os.write(2, b'from C'); os._exit(0)", 0, "from C"),
    ],
)
def test_the_return_code_is_that_of_a_process(run_without_jax, program, code, printed):
    done = run_without_jax("-c", program)
    assert done.returncode == code
    assert done.stderr.endswith(printed)


def test_a_program_that_takes_too_long_is_killed(run_without_jax, tmp_path):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with pytest.raises(subprocess.TimeoutExpired) as stopped:
        run_without_jax("-c", program, timeout=0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(int(stopped.value.stdout), 0)
    assert run_without_jax("-c", "print('next')").stdout == "next\n"
