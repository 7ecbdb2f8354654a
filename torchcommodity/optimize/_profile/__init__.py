"""Time and memory of the steps of a model, by stage and operator."""
