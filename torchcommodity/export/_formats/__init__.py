"""File formats of an artifact, each with `to_bytes` and a reader."""
