"""Types of arrays, for annotations."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Dates = np.ndarray[Any, np.dtype[np.datetime64]]  # datetime64[D]
Months = np.ndarray[Any, np.dtype[np.datetime64]]  # datetime64[M]
