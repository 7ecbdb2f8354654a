"""Builds of native operators on LibTorch's stable ABI: ahead of time, and just in time."""
