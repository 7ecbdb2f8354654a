"""Body of the response to a predict request."""

from collections.abc import Sequence

import msgspec

from torchcommodity.serve.http._served import ServedArtifact


def encode_response(predictions: Sequence[bytes], metadata: ServedArtifact) -> bytes:
    """Join predictions that are encoded as JSON."""
    content = {"predictions": list(map(msgspec.Raw, predictions)), "metadata": artifact_info(metadata)}
    return msgspec.json.encode(content)


def artifact_info(metadata: ServedArtifact) -> dict[str, str]:
    """Identity of the artifact: checksum, version, model and last training date."""
    return {
        "sha256": metadata.sha256,
        "version": metadata.version,
        "model": metadata.model,
        "trained_through": metadata.trained_through,
    }
