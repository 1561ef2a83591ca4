"""What importing the package needs."""

import subprocess
import sys


def test_importing_the_package_loads_no_jax():
    program = (
        "import sys, jaxtf.convert\nprint(sorted({'jax', 'jaxlib'} & {name.split('.')[0] for name in sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
