// Errors of the kernels. An exception must not leave this library: libtorch may be built with another C++ library,
// which would not recognize it. The registered functions hand its text to libtorch, which throws one of its own.
#pragma once
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>

#include <exception>
#include <string>

namespace commodity {

// Text of the exception that `body` throws, until the next call in this thread; nullptr if it throws none.
template <typename Body>
[[gnu::noinline]] const char* error_text(const Body& body) noexcept {
  thread_local std::string text;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "unknown error";
  }
  return text.c_str();
}

using BoxedKernel = void (*)(StableIValue*, uint64_t, uint64_t);

// Only libtorch's exception passes through this function, which has nothing to destroy on its way.
template <BoxedKernel kernel>
void run_kernel(StableIValue* stack, uint64_t inputs, uint64_t outputs) {
  const char* text = error_text([&] { kernel(stack, inputs, outputs); });
  if (text) aoti_torch_check(false, __func__, __FILE__, __LINE__, text);
}

}  // namespace commodity

// TORCH_BOX for this library's kernels.
#define COMMODITY_BOX(name) commodity::run_kernel<TORCH_BOX(&name)>
