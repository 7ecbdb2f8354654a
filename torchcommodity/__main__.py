"""`python -m torchcommodity`: the command line."""

from torchcommodity.cli import main

main()
