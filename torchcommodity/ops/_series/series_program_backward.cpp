// Gradients of the inputs of a series program. The forward pass is run twice: once to save the state at the beginning
// of each segment of time, then segment by segment, from the last to the first, with all registers kept for the
// adjoints. Memory grows with the square root of the number of rows.
#include "adjoint_runner.h"
#include "block_runner.h"

using namespace commodity;
using namespace commodity::series;

namespace {

using Optional = const std::optional<Tensor>&;

constexpr int64_t kSegmentElements = 1 << 16;  // of all registers: half of an L2 cache

// Rows of a segment: whole tiles. Registers of one segment and the states of all take about the same memory if that is
// more than the cache.
int64_t segment_rows(const Program& program, int64_t width, int64_t steps) {
  const double registers = double(program.statements.size() + program.tapes);
  const double balanced = std::sqrt(double(steps) * double(program.traced_states) / registers);
  const int64_t tile = tile_rows(width, steps);
  const int64_t rows = std::max(int64_t(balanced), int64_t(kSegmentElements / (registers * double(width))));
  return std::min(std::max<int64_t>(1, (rows + tile - 1) / tile) * tile, (steps + tile - 1) / tile * tile);
}

// Adds the gradient of the outputs, where it is a number and no output is missing, to that of their registers.
template <typename scalar_t>
SERIES_KERNEL void add_upstream(const scalar_t* grad, const double* bad, const View& view, int64_t rows, double* dy) {
  for (int64_t r = 0; r < rows; ++r, grad += view.stride, bad += view.width, dy += view.width) {
    COMMODITY_IVDEP
    for (int64_t n = 0; n < view.columns; ++n) {
      const double gradient = grad[n];
      dy[n] += ((bad[n] != 0) | missing(gradient)) ? 0 : gradient;
    }
  }
}

template <typename scalar_t>
class Backward {
 public:
  Backward(const Program& program, const Panel& panel, const std::vector<int64_t>& wanted,
           const std::vector<bool>& active, const View& view, int64_t batch, int64_t first)
      : program_(program),
        wanted_(wanted),
        view_(view),
        steps_(panel.shape.steps),
        size_(panel.shape.size()),
        tile_(tile_rows(view.width, steps_)),
        segment_(segment_rows(program, view.width, steps_)),
        inputs_(program, panel, batch, first, view.width),
        forward_(program, view.width, segment_, true, true),
        adjoint_(program, active, forward_, start_state(), view.width, tile_, steps_),
        bad_(tile_ * view.width) {}

  // `grad` and `dx` are the first row and column of the block.
  void run(const scalar_t* grad, scalar_t* dx) {
    save_states();
    for (int64_t begin = (steps_ - 1) / segment_ * segment_; begin >= 0; begin -= segment_) {
      const int64_t rows = std::min(segment_, steps_ - begin);
      const double* state = states_.data() + begin / segment_ * state_size();
      std::copy_n(state, state_size(), forward_.state().begin());
      std::copy_n(state, state_size(), start_.begin());
      for (int64_t r = 0; r < rows; r += tile_) {
        inputs_.load(forward_, view_, begin + r, std::min(tile_, rows - r), r);
        forward_.run(begin, r, std::min(r + tile_, rows));
      }
      for (int64_t r = (rows - 1) / tile_ * tile_; r >= 0; r -= tile_)
        run_tile(begin, r, std::min(r + tile_, rows), grad, dx);
    }
  }

 private:
  const Program& program_;
  const std::vector<int64_t>& wanted_;
  const View view_;
  const int64_t steps_, size_, tile_, segment_;
  AlignedVector<double> start_;  // the state before the segment
  BlockInputs<scalar_t> inputs_;
  TileRunner forward_;
  AdjointRunner adjoint_;
  AlignedVector<double> bad_, states_;

  int64_t state_size() const { return program_.traced_states * view_.width; }

  const double* start_state() {
    start_.resize(state_size());
    return start_.data();
  }

  void save_states() {
    TileRunner runner(program_, view_.width, tile_, true, false);
    runner.start();
    states_.resize((steps_ + segment_ - 1) / segment_ * state_size());
    for (int64_t t = 0; t < steps_; t += tile_) {
      if (t % segment_ == 0)
        std::copy_n(runner.state().begin(), state_size(), states_.begin() + t / segment_ * state_size());
      if (t >= (steps_ - 1) / segment_ * segment_) break;  // the last segment is run below
      const int64_t rows = std::min(tile_, steps_ - t);
      inputs_.load(runner, view_, t, rows, 0);
      runner.run(t, 0, rows);
    }
  }

  // Rows [begin, end) of the segment that begins at row `time`.
  void run_tile(int64_t time, int64_t begin, int64_t end, const scalar_t* grad, scalar_t* dx) {
    const int64_t rows = end - begin, offset = (time + begin) * view_.stride;
    std::fill_n(bad_.begin(), rows * view_.width, 0.0);
    for (int output : program_.outputs)
      mark_missing_values(forward_.value(output) + begin * view_.width, rows * view_.width, bad_.data());
    adjoint_.clear();
    int64_t flat_rows = rows;
    const View flat = flatten(view_, flat_rows);
    for (size_t k = 0; k < program_.outputs.size(); ++k)
      if (double* dy = adjoint_.gradient(program_.outputs[k]))
        add_upstream(grad + int64_t(k) * size_ + offset, bad_.data(), flat, flat_rows, dy);
    adjoint_.run(time, begin, end);
    for (size_t k = 0; k < wanted_.size(); ++k)
      store_tile(input_gradient(wanted_[k]), nullptr, flat, flat_rows, 0, dx + int64_t(k) * size_ + offset);
  }

  // Zero if no output depends on the input.
  const double* input_gradient(int64_t input) {
    for (size_t i = 0; i < program_.statements.size(); ++i)
      if (program_.statements[i].kind == Kind::kInput && int64_t(program_.statements[i].attributes[0]) == input)
        if (const double* gradient = adjoint_.gradient(int(i))) return gradient;
    std::fill(bad_.begin(), bad_.end(), 0.0);
    return bad_.data();
  }
};

Tensor series_program_backward(const Tensor& grad_, const Tensor& x0, Optional x1, Optional x2, Optional x3,
                               Optional x4, Optional x5, Optional x6, Optional x7, std::string text,
                               std::vector<int64_t> wanted) {
  STD_TORCH_CHECK(x0.dim() >= 2, "series_program_backward: panels must be (..., T, N)");
  const std::shared_ptr<const Program> program = parse(text);
  const Panel panel("series_program_backward", program->inputs, x0, {&x1, &x2, &x3, &x4, &x5, &x6, &x7});
  const Tensor grad = contiguous(grad_);
  const int64_t outputs = int64_t(program->outputs.size()), size = panel.shape.size();
  STD_TORCH_CHECK(program->result == Result::kFloat, "series_program_backward: an integer output has no gradient");
  STD_TORCH_CHECK(grad.numel() == outputs * panel.inputs[0].numel() && grad.scalar_type() == x0.scalar_type(),
                  "series_program_backward: grad must have the shape and dtype of the output");
  Tensor dx = on_huge_pages(new_empty(x0, panel.result_shape(wanted.size())));
  const std::vector<bool> active = find_active(*program, wanted);
  THO_DISPATCH_V2(x0.scalar_type(), "series_program_backward", AT_WRAP([&] {
                    const scalar_t* upstream = grad.const_data_ptr<scalar_t>();
                    scalar_t* gradients = dx.mutable_data_ptr<scalar_t>();
                    for_each_block(panel.shape, [&](int64_t batch, int64_t first, int64_t last) {
                      const View view{panel.shape.assets, last - first, padded(last - first)};
                      Backward<scalar_t>(*program, panel, wanted, active, view, batch, first)
                          .run(upstream + batch * outputs * size + first,
                               gradients + batch * int64_t(wanted.size()) * size + first);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(series_program_backward,
                   "(Tensor grad, Tensor x0, Tensor? x1, Tensor? x2, Tensor? x3, Tensor? x4, Tensor? x5, "
                   "Tensor? x6, Tensor? x7, str program, SymInt[] wanted) -> Tensor")
