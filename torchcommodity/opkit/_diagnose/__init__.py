"""`opkit.diagnose(model, batch, loss_fn)`: find out why a model does not learn, with file and line."""

from torchcommodity.opkit._diagnose.diagnose import diagnose as diagnose
from torchcommodity.opkit._diagnose.findings import Diagnosis as Diagnosis
from torchcommodity.opkit._diagnose.findings import Finding as Finding

__all__ = ["Diagnosis", "Finding", "diagnose"]
