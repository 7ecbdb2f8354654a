// A program over rows of a block of columns: tiles in, statements, tiles out.
#pragma once
#include "panel.h"
#include "panel_io.h"
#include "tile_runner.h"

namespace commodity::series {

template <typename scalar_t>
class BlockInputs {
 public:
  BlockInputs(const Program& program, const Panel& panel, int64_t batch, const View& view, int64_t first)
      : program_(program),
        view_(view),
        bad_(program.panels > 1 ? tile_rows(view.width, panel.shape.steps) * view.width : 0) {
    for (const Tensor& x : panel.inputs)
      data_.push_back(x.const_data_ptr<scalar_t>() + batch * panel.shape.size() + first);
  }

  // Rows [begin, begin + rows) of the panels, at most those of a tile, to row `at` of the registers.
  void load(TileRunner& runner, int64_t begin, int64_t rows, int64_t at) {
    int64_t flat_rows = rows;
    const View flat = flatten(view_, flat_rows);
    double* bad = bad_.empty() ? nullptr : bad_.data();
    if (bad) std::fill_n(bad, rows * view_.width, 0.0);
    for (int k = 0; bad && k < program_.panels; ++k)
      mark_missing(data_[k] + begin * view_.stride, flat, flat_rows, bad);
    for (size_t i = 0; i < program_.statements.size(); ++i) {
      if (program_.statements[i].kind != Kind::kInput) continue;
      const int k = int(program_.statements[i].attributes[0]);
      load_tile(data_[k] + begin * view_.stride, flat, flat_rows, k < program_.panels ? bad : nullptr,
                runner.value(int(i)) + at * view_.width);
    }
  }

  // Rows [begin, begin + rows) will be loaded soon.
  void prefetch(int64_t begin, int64_t rows) const {
    for (const scalar_t* x : data_) prefetch_tile<false>(x + begin * view_.stride, view_, rows);
  }

 private:
  const Program& program_;
  const View view_;
  AlignedVector<double> bad_;
  std::vector<const scalar_t*> data_;
};

// Where an output is missing, all are.
class BlockOutputs {
 public:
  BlockOutputs(const Program& program, const View& view, int64_t tile)
      : program_(program), view_(view), bad_(program.outputs.size() > 1 ? tile * view.width : 0) {}

  // `y` is row 0 of the rows in the first output; the outputs are `size` elements apart.
  template <typename result_t>
  void store(TileRunner& runner, int64_t rows, result_t* y, int64_t size, double absent) {
    double* bad = bad_.empty() ? nullptr : bad_.data();
    if (bad) std::fill_n(bad, rows * view_.width, 0.0);
    for (int output : program_.outputs)
      if (bad) mark_missing_values(runner.value(output), rows * view_.width, bad);
    int64_t flat_rows = rows;
    const View flat = flatten(view_, flat_rows);
    for (int output : program_.outputs) {
      store_tile(runner.value(output), bad, flat, flat_rows, absent, y);
      y += size;
    }
  }

 private:
  const Program& program_;
  const View view_;
  AlignedVector<double> bad_;
};

// All rows of a block, from the state of `runner`.
template <typename scalar_t, typename result_t>
void run_rows(const Program& program, const Panel& panel, int64_t batch, const View& view, int64_t first,
              TileRunner& runner, int64_t time, result_t* y, double absent) {
  BlockInputs<scalar_t> inputs(program, panel, batch, view, first);
  const int64_t steps = panel.shape.steps, tile = tile_rows(view.width, steps);
  BlockOutputs outputs(program, view, tile);
  for (int64_t t = 0, rows; t < steps; t += rows) {
    rows = std::min(tile, steps - t);
    inputs.load(runner, t, rows, 0);
    inputs.prefetch(t + rows, std::min(tile, steps - t - rows));
    for (size_t k = 0; k < program.outputs.size(); ++k)
      prefetch_tile<true>(y + int64_t(k) * panel.shape.size() + t * view.stride, view, rows);
    runner.run(time + t, 0, rows);
    outputs.store(runner, rows, y + t * view.stride, panel.shape.size(), absent);
  }
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
void dispatch(const Program& program, const Tensor& x, const Body& body) {
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
