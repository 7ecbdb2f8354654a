"""`opkit.diagnose(model, batch, loss_fn)`: find out why a model does not learn, with file and line."""

from torch_opkit._diagnose.diagnose import diagnose as diagnose
from torch_opkit._diagnose.findings import Diagnosis as Diagnosis
from torch_opkit._diagnose.findings import ModelFinding as ModelFinding

__all__ = ["Diagnosis", "ModelFinding", "diagnose"]
