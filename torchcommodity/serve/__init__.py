"""The exported artefact answers over HTTP, with the page that people look at."""
