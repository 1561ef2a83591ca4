"""Runs programs in processes that have TensorFlow and cannot import JAX, each a copy of one that waits.

Importing TensorFlow takes seconds, a fork of a process that has done so none. Each line of standard input is a request
in JSON, each line of standard output its answer:

    {"arguments": ["-c", "print(1)"], "folder": "/tmp", "stdout": "out", "stderr": "err", "timeout": 60.0}
    {"returncode": 0}

`arguments` are those of `python`: `-c` and a program, or a file, and what it finds in `sys.argv`. The two files take
what it prints. A program that a signal ends has minus its number for a return code; one that takes longer than its
time is killed, and its return code is null.
"""

import json
import os
import runpy
import signal
import sys
import time
import types
from typing import Any


def run_program(arguments: list[str]) -> None:
    """Runs a program as `python ARGUMENTS` does."""
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(arguments[1], "<string>", "exec"), vars(main))
        return
    sys.argv = list(arguments)
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


def child(request: dict[str, Any]) -> int:
    """The return code of a program, in the process that runs it."""
    for number, name in ((0, os.devnull), (1, request["stdout"]), (2, request["stderr"])):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(request["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_program(request["arguments"])
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def answer(request: dict[str, Any]) -> dict[str, int | None]:
    """What became of the program of a request."""
    process = os.fork()
    if process == 0:
        code = child(request)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    end = time.monotonic() + request["timeout"]
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return {"returncode": os.waitstatus_to_exitcode(status)}
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return {"returncode": None}


def main() -> None:
    """Answers requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks stops it
    sys.modules["jax"] = None  # type: ignore[assignment] # TensorFlow imports it where it can
    import numpy  # noqa: F401
    import tensorflow  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
