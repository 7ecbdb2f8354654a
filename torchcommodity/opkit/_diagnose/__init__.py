"""`opkit.diagnose(model, batch, loss_fn)`: find out why a model does not learn, with file and line."""

from torchcommodity.opkit._diagnose.diagnose import diagnose as diagnose
from torchcommodity.opkit._diagnose.findings import Diagnosis as Diagnosis
from torchcommodity.opkit._diagnose.findings import ModelFinding as ModelFinding

__all__ = ["Diagnosis", "ModelFinding", "diagnose"]
