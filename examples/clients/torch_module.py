"""PyTorch modules as JAX functions: torchax writes an artifact, `lift` makes a differentiable function of it.

python torch_module.py FOLDER

A convolutional network and a transformer layer of torch.nn, the latter with a symbolic batch size, are traced by
torch.export and written as artifacts by torchax. A second process, which cannot import torch, lifts them: values and
gradients are torch's, second derivatives and `jax.vmap` work, the weights are trained in JAX, and the functions are
exported again for other platforms.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxtf.serialization import deserialize, export
from jaxtf.shapepoly import symbolic_args_specs

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
BATCHED = {"convolutions": (2, 3, 16, 16), "transformer": ("batch", 7, 16)}


# --- in the process with torch ---


def torchax_export(library):
    """`exported_program_to_stablehlo` of torchax.

    torchax 0.0.13 names overloads of operators with named tensors, which torch 2.13 no longer has: while it is
    imported, they are declared in `library`.
    """
    import torch

    packets = torch._ops.OpOverloadPacket
    of_packet = packets.__getattr__

    def declared(packet, name):
        try:
            return of_packet(packet, name)
        except AttributeError:
            if "name" not in name.lower() or name.startswith("_"):
                raise
            library.define(f"{packet.__name__}.{name}(Tensor self, str dim) -> Tensor")
            return of_packet(packet, name)

    packets.__getattr__ = declared
    try:
        from torchax.export import exported_program_to_stablehlo
    finally:
        packets.__getattr__ = of_packet
    return exported_program_to_stablehlo


def modules():
    """Modules of torch by name."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    convolutions = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        nn.Conv2d(8, 8, 3, padding=1, groups=4),
        nn.GELU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 5),
        nn.LogSoftmax(-1),
    )
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu", batch_first=True)
    return {"convolutions": convolutions.eval(), "transformer": nn.Sequential(layer, nn.Linear(16, 3)).eval()}


def write(folder: Path) -> None:
    """Writes for each module its artifact and what torch computes."""
    import torch

    library = torch.library.Library("aten", "FRAGMENT")  # what is declared lives as long as it does
    to_stablehlo = torchax_export(library)
    for name, module in modules().items():
        sizes = BATCHED[name]
        open_sizes = {0: torch.export.Dim("batch", min=1)} if sizes[0] == "batch" else {}
        x = torch.randn([2 if size == "batch" else size for size in sizes], requires_grad=True)
        program = torch.export.export(module, (x.detach(),), dynamic_shapes=(open_sizes,), strict=False)
        weights, exported = to_stablehlo(program)
        (folder / f"{name}.bin").write_bytes(exported.serialize())

        result = module(x)
        (result**2).sum().backward()
        gradients = [parameter.grad for parameter in module.parameters()]
        numbers = {f"weight{i:02}": np.asarray(weight) for i, weight in enumerate(weights)}
        numbers |= {f"gradient{i:02}": gradient.numpy() for i, gradient in enumerate(gradients)}
        np.savez(folder / f"{name}.npz", x=x.detach(), result=result.detach(), gradient_x=x.grad, **numbers)


# --- in the process without ---


def of_prefix(numbers, prefix):
    """The arrays whose names begin so, in order."""
    return [numbers[key] for key in sorted(numbers) if key.startswith(prefix) and key != "gradient_x"]


def trained(apply, weights, x):
    """The losses of some steps of gradient descent towards what other weights give."""
    target = apply([0.8 * w for w in weights], x)
    step = jax.jit(jax.value_and_grad(lambda weights: jnp.mean((apply(weights, x) - target) ** 2)))
    losses = []
    for _ in range(20):
        value, gradient = step(weights)
        weights = [w - 0.05 * g for w, g in zip(weights, gradient, strict=True)]
        losses.append(float(value))
    return losses


def read(folder: Path) -> None:
    """Compares the lifted artifacts with what torch computed, and uses them as functions of JAX."""
    assert sys.modules["torch"] is None
    for name, sizes in BATCHED.items():
        numbers = np.load(folder / f"{name}.npz")
        weights, gradients = of_prefix(numbers, "weight"), of_prefix(numbers, "gradient")
        parameters, buffers = weights[: len(gradients)], weights[len(gradients) :]
        x = numbers["x"]
        lifted = deserialize(folder / f"{name}.bin").lift()

        def apply(parameters, x, lifted=lifted, buffers=tuple(buffers)):
            [result] = lifted([*parameters, *buffers], ([x],))
            return result

        def loss(parameters, x, apply=apply):
            return jnp.sum(apply(parameters, x) ** 2)

        # Values and gradients are those of torch.
        np.testing.assert_allclose(apply(parameters, x), numbers["result"], **CLOSE)
        of_parameters, of_x = jax.jit(jax.grad(loss, (0, 1)))(parameters, x)
        for ours, theirs in zip([*of_parameters, of_x], [*gradients, numbers["gradient_x"]], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5 * np.abs(theirs).max() + 1e-5)

        # Forward mode is the same derivative; the second one is that of finite differences of the first.
        _, moved = jax.jvp(partial(loss, parameters), (x,), (of_x,))
        np.testing.assert_allclose(moved, np.sum(np.square(of_x)), rtol=1e-4)
        gradient = jax.grad(partial(loss, parameters))
        _, curved = jax.jvp(gradient, (x,), (of_x,))
        unit = 1e-2 / float(np.abs(of_x).max())
        slope = (gradient(x + unit * of_x) - gradient(x - unit * of_x)) / (2 * unit)
        np.testing.assert_allclose(curved, slope, rtol=2e-2, atol=2e-2 * float(np.abs(curved).max()))

        # Several batches at once, and other sizes where the module has an open one.
        batches = np.stack([x, 2 * x, -x])
        each = np.stack([apply(parameters, batch) for batch in batches])
        np.testing.assert_allclose(jax.vmap(apply, (None, 0))(parameters, batches), each, **CLOSE)
        if sizes[0] == "batch":
            many = np.concatenate([x, x, x])
            np.testing.assert_allclose(apply(parameters, many), np.concatenate([numbers["result"]] * 3), **CLOSE)

        # For other platforms than it was written for, under another name of the size.
        shapes = (None, f"({'n' if sizes[0] == 'batch' else 2}, ...)")
        again = export(apply, platforms=("cpu", "cuda", "tpu"))(*symbolic_args_specs((parameters, x), shapes))
        np.testing.assert_allclose(again.call(parameters, x), numbers["result"], **CLOSE)

        losses = trained(apply, parameters, x)
        assert losses[-1] < 0.5 * losses[0], losses
        print(f"{name}: {len(gradients) + 1} gradients as in torch, loss {losses[0]:.2g} -> {losses[-1]:.2g}")
        print(again)


def main(folder: str) -> None:
    write(Path(folder))
    # A process in which an import of torch fails.
    program = f"import sys; sys.modules['torch'] = None; sys.argv = [{__file__!r}, {folder!r}, 'read']\n"
    program += f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
    subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    if sys.argv[2:] == ["read"]:
        read(Path(sys.argv[1]))
    else:
        main(sys.argv[1])
