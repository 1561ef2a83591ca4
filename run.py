"""Runs the project's routines on a fresh machine: `python3 run.py quickstart`, `python3 run.py tests`.

Needs Python 3.11 to 3.14 and nothing else. The first run makes `.tools/`, a virtual environment with
nox and uv for this interpreter; the system's Python is left as it is. The words that follow are sessions
of `noxfile.py`, what begins with a dash is passed to nox; without arguments the sessions are listed.

Written for the standard library, and to be readable by Python 3.6, so that an old interpreter gets a
sentence instead of a syntax error.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TOOLS = ("nox[uv]==2026.*",)
OLDEST_PYTHON = (3, 11)
NEWEST_TRIED = (3, 13)
NEWEST_PYTHON = (3, 14)
UNTRIED = (
    "jaxtf is untried on Python 3.14, for which TensorFlow has only the pre-release 2.22.0rc0 (November 2026): the "
    "session next_python runs the tests with that one; other sessions may find no TensorFlow"
)


def main(arguments):
    """Runs nox with the arguments, and returns its exit status."""
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        oldest, tried, newest = (".".join(map(str, v)) for v in (OLDEST_PYTHON, NEWEST_TRIED, NEWEST_PYTHON))
        found = sys.version.split()[0]
        return f"jaxtf needs Python {oldest} to {newest}; {sys.executable} is {found}. Try: python{tried} run.py"
    if sys.version_info[:2] > NEWEST_TRIED:
        print(UNTRIED, file=sys.stderr, flush=True)
    try:
        nox = install_tools(ROOT / ".tools" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
    except ToolsError as error:
        return str(error)
    lists = not arguments
    if lists:
        arguments = ["--list"]
    elif not arguments[0].startswith("-"):
        arguments = ["--session", *arguments]
    # Installers started by the sessions must not take their options from a PYTHONPATH or PYTHONHOME of the caller.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        status = subprocess.call([*nox, "--noxfile", str(ROOT / "noxfile.py"), *arguments], env=environment)
    except KeyboardInterrupt:
        return 130
    if lists and status == 0:
        print(f"Marks or not, each runs when it is named: python3 {Path(__file__).name} quickstart")
    return status


class ToolsError(Exception):
    """The tools cannot be installed; the message says what the person can do."""


def install_tools(home):
    """The command that starts nox from the virtual environment `home`, which is made unless it is complete."""
    python = home / ("Scripts" if os.name == "nt" else "bin") / ("python.exe" if os.name == "nt" else "python")
    stamp = home / "complete"
    wanted = "\n".join([*TOOLS, sys.version, os.path.realpath(sys.executable)])
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Installing {' '.join(TOOLS)} into {home.relative_to(ROOT)} ...", file=sys.stderr, flush=True)
        if home.exists():
            shutil.rmtree(home)
        venv.create(home, with_pip=False, symlinks=os.name != "nt")
        step = subprocess.run([*installer(python), *TOOLS], check=False)
        if step.returncode != 0:
            raise ToolsError(
                f"Installing {' '.join(TOOLS)} failed (exit status {step.returncode}; its messages are above). "
                "Is a package index reachable? Then run the same command again."
            )
        stamp.write_text(wanted)
    return [str(python), "-m", "nox"]


def installer(python):
    """A command that installs packages into the environment of `python`, by the first installer that works here."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(python), "install", "--disable-pip-version-check"]
    # That the module is there does not tell: Debian without python3-venv has ensurepip without the wheel it installs.
    if runs(str(python), "-m", "ensurepip", "--upgrade"):
        return [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    if runs("uv", "--version"):
        return ["uv", "pip", "install", "--python", str(python)]
    raise ToolsError(
        f"{sys.executable} has neither pip nor a working ensurepip, and uv is not on PATH. On Debian or Ubuntu: "
        "apt-get install python3-venv; elsewhere install pip or uv. Then run the same command again."
    )


def runs(*command):
    """Whether the command exists and succeeds; what it prints is dropped."""
    try:
        return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
