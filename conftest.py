"""The threads of every test process, before one imports torch."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run in parallel; and a fork does not have the threads of OpenMP
