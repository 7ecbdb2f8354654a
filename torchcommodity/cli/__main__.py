"""`python -m torchcommodity.cli`."""

from torchcommodity.cli import main

main()
