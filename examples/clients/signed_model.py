"""A program with its weights, signed and verified offline with a key pair, by model-signing (OpenSSF).

python signed_model.py FOLDER

The digests in a file say that its bytes are those that were written; who wrote them, a signature says. It is in a file
of its own, next to the program. A program that somebody else wrote in its place has digests that are right, and no
signature.
"""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from cryptography.hazmat.primitives import serialization as keys
from cryptography.hazmat.primitives.asymmetric import ec

from jaxtf.serialization import ArtifactError, export, load, save


def write_keys(folder: Path) -> tuple[str, str]:
    """A key pair for ECDSA on the curve P-256; the private one stays with whoever signs."""
    private = ec.generate_private_key(ec.SECP256R1())
    plain = keys.NoEncryption()
    (folder / "key.pem").write_bytes(private.private_bytes(keys.Encoding.PEM, keys.PrivateFormat.PKCS8, plain))
    public = private.public_key().public_bytes(keys.Encoding.PEM, keys.PublicFormat.SubjectPublicKeyInfo)
    (folder / "key.pub").write_bytes(public)
    return str(folder / "key.pem"), str(folder / "key.pub")


def model_signing(*words: str) -> bool:
    """Runs the command of the package; whether it succeeded."""
    command = Path(sys.executable).with_name("model_signing")
    done = subprocess.run([str(command), *words], capture_output=True, text=True, check=False)
    print("$ model_signing", *words)
    print(done.stdout.strip() or done.stderr.strip().partition(":")[0])
    return done.returncode == 0


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    private, public = write_keys(folder)
    program, signature = str(folder / "model.jaxtf"), str(folder / "model.jaxtf.sig")
    params = {"w": np.ones((3, 2), np.float32)}
    exported = export(lambda params, x: x @ params["w"])(params, jax.ShapeDtypeStruct((1, 3), jnp.float32))
    save(program, exported, params, overwrite=True)

    assert model_signing("sign", "key", program, "--private_key", private, "--signature", signature)
    assert model_signing("verify", "key", program, "--public_key", public, "--signature", signature)
    np.testing.assert_array_equal(load(program).call(np.ones((1, 3), np.float32)), [[3.0, 3.0]])

    # Somebody writes another program in its place, under digests that are right.
    save(program, exported, {"w": np.zeros((3, 2), np.float32)}, overwrite=True)
    assert load(program).call(np.ones((1, 3), np.float32))[0, 0] == 0
    assert not model_signing("verify", "key", program, "--public_key", public, "--signature", signature)

    # A bit changes on the way.
    damaged = bytearray(Path(program).read_bytes())
    damaged[-1] ^= 1
    try:
        load(bytes(damaged))
    except ArtifactError as error:
        print(f"load: {str(error).splitlines()[0]}")
    else:
        raise AssertionError("damage must be found")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
