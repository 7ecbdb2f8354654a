// A program over rows of blocks of columns: tiles in, statements, tiles out.
#pragma once
#include "panel.h"
#include "panel_io.h"
#include "tile_runner.h"

namespace commodity::series {

// The panels of a program, from column `first` on.
template <typename scalar_t>
class BlockInputs {
 public:
  BlockInputs(const Program& program, const Panel& panel, int64_t batch, int64_t first, int64_t width)
      : program_(program), bad_(tile_rows(width, panel.shape.steps) * width) {
    for (const Tensor& x : panel.inputs)
      data_.push_back(x.const_data_ptr<scalar_t>() + batch * panel.shape.size() + first);
  }

  // Rows [begin, begin + rows), at most a tile, to row `at` of the registers.
  void load(TileRunner& runner, const View& view, int64_t begin, int64_t rows, int64_t at) {
    const int64_t offset = begin * view.stride, size = rows * view.width;
    int64_t flat_rows = rows;
    const View flat = flatten(view, flat_rows);
    bool finite = true;
    int panels = 0;  // most programs read all
    for (size_t i = 0; i < program_.statements.size(); ++i) {
      if (program_.statements[i].kind != Kind::kInput) continue;
      const int k = int(program_.statements[i].attributes[0]);
      double* value = runner.value(int(i)) + at * view.width;
      finite &= load_tile(data_[k] + offset, flat, flat_rows, rows * view.stride, value);
      panels += k < program_.panels ? 1 : 0;
    }
    if (finite && panels == program_.panels) return;
    for (size_t i = 0; i < program_.statements.size(); ++i) {
      if (program_.statements[i].kind != Kind::kInput) continue;
      const int k = int(program_.statements[i].attributes[0]);
      const bool panel = k < program_.panels;
      std::fill_n(bad_.begin(), size, 0.0);
      for (int m = panel ? 0 : k; m < (panel ? program_.panels : k + 1); ++m)
        mark_missing(data_[m] + offset, flat, flat_rows, bad_.data());
      remove_values(bad_.data(), size, runner.value(int(i)) + at * view.width);
    }
  }

 private:
  const Program& program_;
  AlignedVector<double> bad_;
  std::vector<const scalar_t*> data_;
};

// Where an output is missing, all are.
class BlockOutputs {
 public:
  BlockOutputs(const Program& program, int64_t tile_size) : program_(program), bad_(tile_size) {}

  // `y` is row 0 of the rows in the first output; the outputs are `size` elements apart.
  template <typename result_t>
  void store(TileRunner& runner, const View& view, int64_t rows, result_t* y, int64_t size, double absent) {
    int64_t flat_rows = rows;
    const View flat = flatten(view, flat_rows);
    const auto store_all = [&](const double* bad) {
      bool any = false;
      for (size_t k = 0; k < program_.outputs.size(); ++k)
        any |= store_tile(runner.value(program_.outputs[k]), bad, flat, flat_rows, absent, y + int64_t(k) * size);
      return any;
    };
    if (store_all(nullptr) && program_.outputs.size() > 1) store_all(mark(runner, rows * view.width));
  }

 private:
  const Program& program_;
  AlignedVector<double> bad_;

  const double* mark(TileRunner& runner, int64_t size) {
    std::fill_n(bad_.begin(), size, 0.0);
    for (int output : program_.outputs) mark_missing_values(runner.value(output), size, bad_.data());
    return bad_.data();
  }
};

// All rows of columns [first, last), of which `runner` has the state.
template <typename scalar_t, typename result_t>
void run_rows(const Program& program, const Panel& panel, int64_t batch, int64_t first, int64_t last,
              TileRunner& runner, int64_t time, result_t* y, double absent) {
  const int64_t steps = panel.shape.steps, width = runner.width(), tile = tile_rows(width, steps);
  const View view{panel.shape.assets, last - first, width};
  BlockInputs<scalar_t> inputs(program, panel, batch, first, width);
  BlockOutputs outputs(program, tile * width);
  runner.load_history(time);
  for (int64_t t = 0, rows; t < steps; t += rows) {
    rows = std::min(tile, steps - t);
    inputs.load(runner, view, t, rows, 0);
    runner.run(time + t, 0, rows);
    outputs.store(runner, view, rows, y + t * view.stride, panel.shape.size(), absent);
    runner.advance(rows);
  }
  runner.save_history(time + steps);
}

inline torch::headeronly::ScalarType result_type(const Program& program, const Tensor& x) {
  using torch::headeronly::ScalarType;
  switch (program.result) {
    case Result::kInt8:
      return ScalarType::Char;
    case Result::kInt16:
      return ScalarType::Short;
    case Result::kInt64:
      return ScalarType::Long;
    default:
      return x.scalar_type();
  }
}

inline Tensor new_result(const Program& program, const Panel& panel) {
  const Tensor& x = panel.inputs[0];
  return on_huge_pages(new_empty(x, panel.result_shape(program.outputs.size()), result_type(program, x)));
}

// Calls body(input number type, result number type, value for missing).
template <typename Body>
void dispatch_types(const Program& program, const Tensor& x, const Body& body) {
  THO_DISPATCH_V2(x.scalar_type(), "series_program", AT_WRAP([&] {
                    switch (program.result) {
                      case Result::kInt8:
                        return body(scalar_t(), int8_t(), 0.0);
                      case Result::kInt16:
                        return body(scalar_t(), int16_t(), 0.0);
                      case Result::kInt64:
                        return body(scalar_t(), int64_t(), -1.0);
                      default:
                        return body(scalar_t(), scalar_t(), kMissing);
                    }
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
}

}  // namespace commodity::series
