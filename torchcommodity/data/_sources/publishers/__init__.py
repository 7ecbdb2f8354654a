"""Publishers over HTTP: FRED and the EIA."""
