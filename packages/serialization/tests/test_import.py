"""What importing the package costs, and that it needs no JAX."""

import subprocess
import sys


def test_importing_the_package_loads_neither_jax_nor_tensorflow():
    program = (
        "import sys, jaxtf.serialization\n"
        "print(sorted({'jax', 'jaxlib', 'tensorflow'} & {name.split('.')[0] for name in sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
