"""Programs and panels that the operators of programs are checked on; together they hold every statement."""

import torch
from torch import Tensor

PROGRAMS = (
    "panels 1; input 0; lag %1 2; subtract %1 %2; return float %3",
    "panels 2; input 0; lag %1 1; input 1; subtract %2 %3; return float %4",  # an input after other statements
    # pointwise
    "panels 2; input 0; input 1; constant 0.5; multiply %1 %3; add %4 %2; maximum %5 %1; minimum %6 %2; divide %7 %1; "
    "subtract %8 %3; divide %9 %2 0.0; absolute %10; sqrt %11; exp %12; log %13; atan %14; sin %15; cos %16; "
    "negate %17; lag %18 1; add %19 %8; return float %20",
    "panels 2; input 0; input 1; less %1 %2; less_equal %2 %1; lag %1 1; fill %5 %2; where %3 %6 %1; floor %7; "
    "ceil %7; subtract %9 %8; sign %7; equal %1 %2; valid %5; restrict %7 %13; add %14 %10; add %15 %11; add %16 %12; "
    "add %17 %4; return float %18",
    # along time
    "panels 1; input 0; forward_fill %1; lag %2 1; subtract %1 %3; cumsum %4; count %4; row %1; multiply %5 %6; "
    "add %8 %7; return float %9",
    "panels 2; input 0; input 1; constant 0.3; constant 3.0; constant 4.0; exponential %1 %3 %4 %5 %3; lag %1 1; "
    "recurrence %3 %2 %7; add %6 %8; return float %9",
    # windows
    "panels 1; input 0; window_sum %1 3; age_sum %1 4; window_products %1 %1 3; sqrt %4; absolute_deviation %1 4; "
    "add %2 %3; add %7 %5; add %8 %6; return float %9",
    "panels 2; input 0; input 1; highest %1 4; lowest %2 3; window_products %1 %2 4; since_highest %1 3; "
    "since_lowest %2 4; rank %1 3; add %3 %4; add %9 %5; add %10 %6; add %11 %7; add %12 %8; return float %13",
    # a loop: y moves by 0.1 + 0.2 sin(y) of the distance to the price, and counts its rises
    "panels 1; input 0; constant 0.1; constant 0.2; feedback 1.0; feedback 0.0; sin %4; multiply %6 %3; add %7 %2; "
    "subtract %1 %4; multiply %8 %9; add %4 %10; less %4 %11; add %5 %12; assign %4 %11; assign %5 %13; "
    "add %11 %13; return float %16",
)


def sample_inputs() -> list[Tensor]:
    """Two panels (2, 12, 3) of positive numbers, with holes in the second batch."""
    generator = torch.Generator().manual_seed(0)
    x = 2 + torch.rand(2, 2, 12, 3, dtype=torch.double, generator=generator)
    x[0, 1, 5, 1] = x[1, 1, 0, 0] = torch.nan
    x[0, 1, 8, 2] = torch.inf
    return [*x]
