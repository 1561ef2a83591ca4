"""TF Serving: a SavedModel of a JAX function behind its gRPC and its REST address, asked for several sizes of batch.

    JAXTF_SERVING_PYTHON=.../bin/python python serving_client.py FOLDER

The client is TF Serving's own (tensorflow-serving-api). The server is `tensorflow_model_server` where that is on PATH;
elsewhere a substitute, `model_server.py`, run by the interpreter JAXTF_SERVING_PYTHON, which has TensorFlow and no JAX.
Every answer is compared with JAX's.
"""

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import grpc
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from jaxtf.convert import save_model

NAME = "digits"
BATCHES = (1, 7, 64)


def predict(params, images):
    logits = jnp.tanh(images.reshape(images.shape[0], -1) @ params["w1"]) @ params["w2"]
    return {"scores": jax.nn.softmax(logits), "digit": logits.argmax(axis=1)}


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [open_socket.getsockname()[1] for open_socket in sockets]
    for open_socket in sockets:
        open_socket.close()
    return ports


@contextmanager
def serving(base: Path) -> Iterator[tuple[grpc.Channel, str]]:
    """A server of the model while the context lasts: a gRPC channel to it, and its REST address."""
    port, rest_port = free_ports(2)
    # XLA runs the module of a JAX function; TF Serving enables XLA on a CPU only with this option.
    command = ["tensorflow_model_server", "--xla_cpu_compilation_enabled=true"]
    if not shutil.which(command[0]):
        command = [os.environ["JAXTF_SERVING_PYTHON"], str(Path(__file__).with_name("model_server.py"))]
    command += [f"--port={port}", f"--rest_api_port={rest_port}", f"--model_name={NAME}", f"--model_base_path={base}"]
    print("server:", " ".join(command))
    server = subprocess.Popen(command)
    try:
        with grpc.insecure_channel(f"localhost:{port}") as channel:
            ready = grpc.channel_ready_future(channel)
            deadline = time.monotonic() + 300
            while not ready.done():
                assert server.poll() is None, f"the server ended with {server.returncode}"
                assert time.monotonic() < deadline, "the server is not ready after 5 minutes"
                time.sleep(0.1)
            yield channel, f"http://localhost:{rest_port}/v1/models"
    finally:
        server.terminate()
        server.wait()


def by_grpc(channel: grpc.Channel, images: np.ndarray, name: str = NAME) -> dict[str, np.ndarray]:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = "serving_default"
    request.inputs["images"].CopyFrom(tf.make_tensor_proto(images))
    response = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=120)
    assert response.model_spec.version.value == 1
    return {key: tf.make_ndarray(value) for key, value in response.outputs.items()}


def by_rest(address: str, images: np.ndarray, name: str = NAME) -> dict[str, np.ndarray]:
    body = json.dumps({"instances": [{"images": image} for image in images.tolist()]}).encode()
    request = Request(f"{address}/{name}:predict", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=120) as response:
        rows = json.load(response)["predictions"]
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def milliseconds(ask: Callable, *arguments) -> float:
    """Median time of 20 requests."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        ask(*arguments)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def refusal(ask: Callable, *arguments) -> grpc.RpcError | HTTPError:
    """The error that a request ends with."""
    try:
        ask(*arguments)
    except (grpc.RpcError, HTTPError) as error:
        return error
    raise AssertionError(f"{arguments[-1]} was answered")


def main(folder: str) -> None:
    random = np.random.default_rng(0)
    params = {
        "w1": random.normal(size=(64, 32), scale=0.1).astype(np.float32),
        "w2": random.normal(size=(32, 10)).astype(np.float32),
    }
    saved = save_model(
        predict,
        params,
        Path(folder, NAME, "1"),  # a server looks for numbered versions of the model
        input_signatures=[tf.TensorSpec([None, 8, 8], tf.float32)],
        polymorphic_shapes=["(batch, _, _)"],
        gradient_order=0,
    )
    print(saved.signatures["serving_default"])
    with serving(Path(folder, NAME).resolve()) as (channel, address):
        for batch in BATCHES:
            images = random.uniform(0, 1, (batch, 8, 8)).astype(np.float32)
            expected = predict(params, images)
            for ask, server in ((by_grpc, channel), (by_rest, address)):
                found = ask(server, images)
                np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-4, atol=1e-6)
                np.testing.assert_array_equal(found["digit"], expected["digit"])
                assert found["scores"].shape == (batch, 10)
            times = f"gRPC {milliseconds(by_grpc, channel, images):.1f} ms"
            times += f", REST {milliseconds(by_rest, address, images):.1f} ms"
            print(f"TF Serving's client, batch of {batch}: JAX's numbers; {times}")

        assert refusal(by_grpc, channel, images, "letters").code() == grpc.StatusCode.NOT_FOUND
        assert refusal(by_rest, address, images, "letters").code == 404


if __name__ == "__main__":
    main(sys.argv[1])
