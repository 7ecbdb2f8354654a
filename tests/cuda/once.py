"""Every native operator once, forward and backward, on small inputs: what compute-sanitizer watches.

Sizes are odd, so that the last warps and chunks are incomplete; long panels take several blocks of a scan, where some
threads are idle. `once.py NAME ...` runs some.
"""

import sys

import torch
from gpu import exit_without_gpu, synchronize
from operators import cases_of, gradients, native_operators, on_gpu, resized


def main() -> None:
    exit_without_gpu()
    for op in native_operators():
        if sys.argv[1:] and op.name not in sys.argv[1:]:
            continue
        for case in cases_of(op)[:2]:
            for dtype in (torch.float32, torch.float64):
                small = on_gpu(resized(case, 2, 67, 35, dtype))
                small.call()
                gradients(small)
            on_gpu(resized(case, 1, 1603, 10, torch.float32)).call()
        synchronize()
        print(f"ran {op.name}", flush=True)


if __name__ == "__main__":
    main()
