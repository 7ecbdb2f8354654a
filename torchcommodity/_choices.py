"""Names that a user chooses from, where the command line checks them: it starts without torch.

The packages that give these names their meaning take them from here.
"""

import re
from typing import Literal

ModelName = Literal[
    "har-garch", "har-lstm", "har-lltm", "har-tcn", "har-attention", "har-regime", "garch-lstm", "har-mlp-lstm",
    "har-orthogonal-lstm",
]  # fmt: skip

DEFAULT_MODEL: ModelName = "har-garch"

DateOrder = Literal["ymd", "dmy", "mdy"]
DecimalMark = Literal[".", ","]
Adjustment = Literal["none", "panama", "ratio"]
Transform = Literal["level", "changes", "volatility"]

ArtifactFormat = Literal["pt2", "aoti", "onnx"]
ARTIFACT_ENDINGS: dict[ArtifactFormat, str] = {"aoti": ".aoti.pt2", "pt2": ".pt2", "onnx": ".onnx"}  # the longest first


def artifact_format(name: str) -> ArtifactFormat | None:
    """The format of an exported file by the ending of its name; None for any other ending.

    >>> artifact_format("wti.aoti.pt2"), artifact_format("wti")
    ('aoti', None)
    """
    return next((format for format, ending in ARTIFACT_ENDINGS.items() if name.lower().endswith(ending)), None)


ExecutorName = Literal["local", "ray"]
TrackName = Literal["daily", "monthly"]

DEVICE = re.compile(r"auto|[a-z]+(:\d+)?")
