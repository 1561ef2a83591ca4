"""What importing the package needs."""

import subprocess
import sys


def test_the_package_is_imported_where_there_is_no_jax():
    # TensorFlow itself imports JAX where it is installed, so it is made not to be.
    program = "import sys; sys.modules['jax'] = sys.modules['jaxlib'] = None; import jaxtf.convert; print('imported')"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "imported", found.stderr
