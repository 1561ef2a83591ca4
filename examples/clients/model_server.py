"""A substitute for `tensorflow_model_server`, for machines that cannot have it: Predict by gRPC and by REST.

    python model_server.py --port=8500 --rest_api_port=8501 --model_name=NAME --model_base_path=FOLDER

Its flags, its protocol (tensorflow-serving-api) and its folders: the highest of FOLDER/1, FOLDER/2 and so on is served.
No more than `serving_client.py` asks: one model, Predict, and of its REST form `instances`. Knows nothing of JAX, and
refuses to run where it is installed.
"""

import argparse
import importlib.util
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc


class ServingError(Exception):
    """What the client did wrong, as a code of gRPC; the message is for people."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Served:
    """The newest version of a SavedModel, by the names of its signatures."""

    def __init__(self, name: str, base: Path) -> None:
        self.name = name
        self.version = max(int(folder.name) for folder in base.iterdir() if folder.name.isdecimal())
        self.loaded = tf.saved_model.load(str(base / str(self.version)))

    def predict(self, name: str, signature: str, inputs: dict) -> dict[str, tf.Tensor]:
        """Results by name, from inputs by name, which may be nested lists."""
        if name != self.name:
            raise ServingError(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: Latest({name})")
        if signature not in self.loaded.signatures:
            raise ServingError(grpc.StatusCode.FAILED_PRECONDITION, f'Serving signature key "{signature}" not found.')
        function = self.loaded.signatures[signature]
        specs = function.structured_input_signature[1]
        try:
            return function(**{key: tf.convert_to_tensor(value, specs[key].dtype) for key, value in inputs.items()})
        except (KeyError, TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise ServingError(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """gRPC: tensors in, tensors out."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def Predict(self, request, context):
        signature = request.model_spec.signature_name or "serving_default"
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        try:
            results = self.served.predict(request.model_spec.name, signature, inputs)
        except ServingError as error:
            context.abort(error.code, str(error))
        response = predict_pb2.PredictResponse()
        response.model_spec.name = self.served.name
        response.model_spec.version.value = self.served.version
        response.model_spec.signature_name = signature
        for key, value in results.items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(value.numpy()))
        return response


def rest(served: Served) -> type[BaseHTTPRequestHandler]:
    """REST: POST /v1/models/NAME:predict with one instance after another; a prediction for each."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = self.path.removeprefix("/v1/models/").removesuffix(":predict")
            try:
                rows = {key: [row[key] for row in body["instances"]] for key in body["instances"][0]}
                results = served.predict(name, body.get("signature_name", "serving_default"), rows)
            except ServingError as error:
                self.answer(404 if error.code == grpc.StatusCode.NOT_FOUND else 400, {"error": str(error)})
                return
            columns = {key: value.numpy().tolist() for key, value in results.items()}
            rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            self.answer(200, {"predictions": rows})

        def answer(self, status: int, content: dict) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments) -> None:
            """Nothing for each request."""

    return Handler


def main() -> None:
    assert importlib.util.find_spec("jax") is None, "the server must run where JAX is not installed"
    parser = argparse.ArgumentParser()
    for flag in ("port", "rest_api_port", "model_name", "model_base_path"):
        parser.add_argument(f"--{flag}", required=True)
    flags = parser.parse_args()
    served = Served(flags.model_name, Path(flags.model_base_path))
    http = ThreadingHTTPServer(("localhost", int(flags.rest_api_port)), rest(served))
    threading.Thread(target=http.serve_forever, daemon=True).start()
    server = grpc.server(ThreadPoolExecutor(4))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(PredictionService(served), server)
    server.add_insecure_port(f"localhost:{flags.port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
