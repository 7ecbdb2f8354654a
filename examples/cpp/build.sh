#!/bin/sh
# build.sh OUT: compile forecast.cpp against the torch that `python` imports
set -e
torch=$(python -c 'import torch; print(torch.__path__[0])')
c++ -std=c++20 -O1 "$(dirname "$0")/forecast.cpp" -o "$1" -I"$torch/include" -I"$torch/include/torch/csrc/api/include" \
  -L"$torch/lib" -Wl,-rpath,"$torch/lib" -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10 -ldl
