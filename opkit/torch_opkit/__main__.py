"""`python -m torch_opkit`: the command `opkit`."""

from torch_opkit._cli import main

main()
