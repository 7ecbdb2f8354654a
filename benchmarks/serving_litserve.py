"""Server that one writes with LitServe over an artifact: `python benchmarks/serving_litserve.py ARTIFACT PORT`."""

import sys
from typing import Any

import litserve
import torch
from fastapi import Request
from serving_fastapi import predict_instance

from torchcommodity.export import Artifact


class Api(litserve.LitAPI):
    def setup(self, device: str) -> None:
        torch.set_num_threads(1)
        self.artifact = Artifact.load(sys.argv[1], trusted=True)

    def decode_request(self, request: Request) -> Any:  # LitServe passes its JSON content
        return request["instances"]  # type: ignore[index]

    def predict(self, instances: Any) -> Any:
        return [predict_instance(self.artifact, each["prices"], each["dates"]) for each in instances]

    def encode_response(self, output: Any) -> Any:
        return {"predictions": output}


if __name__ == "__main__":
    server = litserve.LitServer(Api(), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[2]), generate_client_file=False)
