// One thread per panel: a recursion over matrices (N, N).
#pragma once
#include "dcc_panels.h"
#include "device.h"

namespace commodity {

template <typename Body>
struct PanelItem {
  Body body;
  double* memory;

  COMMODITY_INLINE void operator()(int64_t panel) const { body(panel, memory + panel * body.memory()); }
};

// Calls body(panel, memory) for every panel, with body.memory() numbers of its own.
template <typename Body>
void launch_panels(const Tensor& like, int64_t batch, const Body& body) {
  const Tensor memory = scratch(like, batch * body.memory());
  launch(like, batch, PanelItem<Body>{body, data_ptr<double>(memory)});
}

}  // namespace commodity
