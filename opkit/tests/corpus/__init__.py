"""Operators of every make, faulty and healthy, on which `opkit.check` is judged."""
