"""The exported artefact answers: requests over `http`, tables of panels in a `batch`, people on the `dashboard`."""
