"""Serving with Ray Serve: `python serve.py savedmodel|artifact FOLDER [--address HOST:PORT]`.

A deployment holds the model; 1 and 2 replicas of it answer HTTP requests from 4 threads. A request is an image array
in NumPy's file format, the answer its logits in the same. Every answer is compared with JAX's. The rate counts what a
client sees: HTTP, Ray Serve's proxy and the model.
"""

import io
import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.request import Request, urlopen

from cluster import arguments, join  # before Ray, whose settings it makes

# isort: split
import numpy as np
from models import assert_as_in_jax, loaded, packed
from ray import serve
from starlette.requests import Request as Asked
from starlette.responses import Response

SIZES = (1, 7, 64, 450)  # images in a request; each is compiled once
SECONDS, THREADS, MEASURED = 10, 4, 64


@serve.deployment(ray_actor_options={"num_cpus": 1}, max_ongoing_requests=8)
class Reader:
    """Holds the model; every request runs it once."""

    def __init__(self, kind: str, model: bytes):
        self.model = loaded(kind, model)
        for size in SIZES:  # compiled before the first request comes
            self.model(np.zeros((size, 8, 8), np.float32))

    async def __call__(self, request: Asked) -> Response:
        """The logits of the images in the request's body."""
        images = np.load(io.BytesIO(await request.body()), allow_pickle=False)
        return Response(as_bytes(self.model(images)), media_type="application/octet-stream")


def as_bytes(array: np.ndarray) -> bytes:
    """An array in NumPy's file format."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def asked(url: str, images: np.ndarray) -> np.ndarray:
    """The logits that the server answers."""
    with urlopen(Request(url, data=as_bytes(images), method="POST"), timeout=60) as answer:
        return np.load(io.BytesIO(answer.read()), allow_pickle=False)


def requests_until(end: float, url: str, images: np.ndarray, expected: np.ndarray) -> int:
    """How many requests were answered, one after another, before `end`."""
    count = 0
    while time.monotonic() < end:
        start = 37 * count % (len(images) - MEASURED)
        part = slice(start, start + MEASURED)
        assert_as_in_jax(asked(url, images[part]), expected[part])
        count += 1
    return count


def started(address: str | None) -> str:
    """The URL of the started server: on the head of the cluster at the address, or here on a port that is free."""
    if address:
        head = address.removeprefix("ray://").rpartition(":")[0] or "127.0.0.1"
        serve.start(http_options={"host": "0.0.0.0", "port": 8000})
        return f"http://{head}:8000/digits"
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    return f"http://127.0.0.1:{port}/digits"


def main() -> None:
    """Deploys, compares, measures."""
    options = arguments(__doc__)
    join(options.address)
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    url = started(options.address)
    expected = dict(np.load(options.folder / "expected.npz"))
    images, logits = expected["images"], expected["logits"]
    model = packed(options.kind, options.folder)
    for replicas in (1, 2):
        serve.run(Reader.options(num_replicas=replicas).bind(options.kind, model), route_prefix="/digits")
        for size in SIZES:
            assert_as_in_jax(asked(url, images[:size]), logits[:size])
        end = time.monotonic() + SECONDS
        with ThreadPoolExecutor(THREADS) as pool:
            asking = [pool.submit(requests_until, end, url, images, logits) for _ in range(THREADS)]
            done = sum(one.result() for one in asking)
        print(
            f"Ray Serve, {options.kind}, {replicas} replica(s): {done / SECONDS:,.0f} requests/s of {MEASURED} images, "
            f"{done * MEASURED / SECONDS:,.0f} images/s, all as in JAX",
            flush=True,
        )
    if options.address:
        serve.shutdown()  # a cluster of our own ends with this program


if __name__ == "__main__":
    main()
