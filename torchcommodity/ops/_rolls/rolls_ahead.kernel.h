// Contract rolls between each row and later ones, and sums of the gaps of rolls up to it: see rolls_ahead.py.
#include "kernel.h"

using namespace commodity;

namespace {

constexpr int64_t kMonths = 12, kMoments = 4, kHorizons = 64;  // horizons of a pass over the rows

// One scan over the rows of a series. A roll waits for the next row with a price, whose return contains its gap; then
// it counts among the gaps of its month. The rolls within each horizon are counted by a window of rows that slides on.
template <typename scalar_t>
struct RollScan {
  const int64_t* rolls;          // (B, R, N)
  const bool* has_price;         // (B, T, N)
  const scalar_t* returns;       // (B, T, N)
  const int64_t* before_counts;  // (B, 24, N) or null: waiting rolls and gaps by month
  const double* before_sums;     // (B, 13, N) or null: gaps by month and their squares
  bool* passed;                  // (B, T, N)
  int64_t* counts;               // (B, L, H, N)
  scalar_t* shift;               // (B, L, H, N)
  double* moments;               // (B, L, 4, N)
  int64_t* next_counts;
  double* next_sums;
  int64_t horizons[kHorizons];
  int64_t H, all, first, T, R, N, L;  // horizons [first, first + H) of all
  double prior;

  // waiting, number, sum and mean of gaps by month; rolls by month, last row and open rows of each window
  COMMODITY_INLINE int64_t memory() const { return 4 * kMonths + H * (kMonths + 2); }
  int64_t work() const { return 4 * R; }

  COMMODITY_INLINE void operator()(int64_t series, double* memory) const {
    const int64_t panel = series / N, column = series % N;
    const int64_t* roll = rolls + panel * R * N + column;
    double *waiting = memory, *number = waiting + kMonths, *sum = number + kMonths;
    double all_waiting = 0, squares = before_sums ? before_sums[(panel * 13 + kMonths) * N + column] : 0;
    for (int64_t m = 0; m < kMonths; ++m) {
      waiting[m] = before_counts ? double(before_counts[(panel * 24 + m) * N + column]) : 0;
      number[m] = before_counts ? double(before_counts[(panel * 24 + kMonths + m) * N + column]) : 0;
      sum[m] = before_sums ? before_sums[(panel * 13 + m) * N + column] : 0;
      all_waiting += waiting[m];
    }
    for (int64_t t = 0; t < T; ++t) {
      const int64_t row = (panel * T + t) * N + column, month = month_of(roll[t * N]);
      if (month > 0) {
        waiting[month - 1] += 1;
        all_waiting += 1;
      }
      const bool passes = has_price[row] && all_waiting > 0;
      if (passes) {
        const double gap = returns[row];
        if (gap == gap) squares += all_waiting * gap * gap;
        for (int64_t m = 0; m < kMonths; ++m) {
          if (gap == gap) {
            number[m] += waiting[m];
            sum[m] += waiting[m] * gap;
          }
          waiting[m] = 0;
        }
        all_waiting = 0;
      }
      passed[row] = passes;
      if (t >= T - L) write(memory, roll, panel, column, t, squares);
    }
    for (int64_t m = 0; m < kMonths; ++m) {
      next_counts[(panel * 24 + m) * N + column] = static_cast<int64_t>(waiting[m]);
      next_counts[(panel * 24 + kMonths + m) * N + column] = static_cast<int64_t>(number[m]);
      next_sums[(panel * 13 + m) * N + column] = sum[m];
    }
    next_sums[(panel * 13 + kMonths) * N + column] = squares;
  }

 private:
  static COMMODITY_INLINE int64_t month_of(int64_t roll) { return roll < 0 ? 0 : roll > kMonths ? kMonths : roll; }

  // Outputs of row t: windows (t, h-th open row after t], or up to the last row where there are fewer.
  COMMODITY_INLINE void write(double* memory, const int64_t* roll, int64_t panel, int64_t column, int64_t t,
                              double squares) const {
    double *waiting = memory, *number = waiting + kMonths, *sum = number + kMonths, *mean = sum + kMonths;
    double *windows = mean + kMonths, *last = windows + H * kMonths, *open = last + H;
    const int64_t l = t - (T - L), line = panel * L + l;
    double between = 0, months = 0, freedom = 0;
    for (int64_t m = 0; m < kMonths; ++m) {
      mean[m] = static_cast<scalar_t>(sum[m]) / (static_cast<scalar_t>(number[m]) + static_cast<scalar_t>(prior));
      between += sum[m] * sum[m] / (number[m] > 1 ? number[m] : 1);
      months += number[m] > 0;
      freedom += number[m] - (number[m] > 0);
    }
    for (int64_t h = 0; h < H; ++h) {
      double* window = windows + h * kMonths;
      if (l == 0) {
        for (int64_t m = 0; m < kMonths; ++m) window[m] = 0;
        last[h] = static_cast<double>(t);
        open[h] = 0;
      } else {
        move(window, open[h], roll[t * N], -1);
      }
      while (open[h] < horizons[h] && last[h] < R - 1) {
        last[h] += 1;
        move(window, open[h], roll[static_cast<int64_t>(last[h]) * N], 1);
      }
      double count = 0, expected = 0;
      for (int64_t m = 0; m < kMonths; ++m) {
        const double ahead = waiting[m] + window[m];
        count += ahead;
        expected += ahead * mean[m];
      }
      counts[(line * all + first + h) * N + column] = static_cast<int64_t>(count);
      shift[(line * all + first + h) * N + column] = static_cast<scalar_t>(expected);
    }
    const double values[kMoments] = {between, squares, freedom, months};
    for (int64_t k = 0; k < kMoments; ++k) moments[(line * kMoments + k) * N + column] = values[k];
  }

  static COMMODITY_INLINE void move(double* window, double& open, int64_t roll, double step) {
    const int64_t month = month_of(roll);
    if (month > 0) window[month - 1] += step;
    open += roll >= 0 ? step : 0;
  }
};

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> rolls_ahead(const Tensor& rolls_, const Tensor& has_price_,
                                                                       const Tensor& returns_,
                                                                       std::vector<int64_t> horizons,
                                                                       std::optional<int64_t> last_rows, double prior,
                                                                       const std::optional<Tensor>& before_counts_,
                                                                       const std::optional<Tensor>& before_sums_) {
  using torch::headeronly::ScalarType;
  STD_TORCH_CHECK(returns_.dim() >= 2 && returns_.sizes().equals(has_price_.sizes()) &&
                      rolls_.dim() == returns_.dim() && rolls_.size(-1) == returns_.size(-1) &&
                      count_panels(rolls_) == count_panels(returns_),
                  "rolls_ahead: expected rolls (..., T + A, N), has_price and returns (..., T, N)");
  STD_TORCH_CHECK(rolls_.scalar_type() == ScalarType::Long && has_price_.scalar_type() == ScalarType::Bool,
                  "rolls_ahead: rolls must be int64, has_price bool");
  const int64_t T = returns_.size(-2), R = rolls_.size(-2), N = returns_.size(-1), panels = count_panels(returns_);
  const int64_t L = last_rows.value_or(T), H = static_cast<int64_t>(horizons.size());
  STD_TORCH_CHECK(0 <= L && L <= T && T <= R && 1 <= H,
                  "rolls_ahead: expected horizons, and last_rows <= T <= rows of rolls");
  const auto check_before = [&](const std::optional<Tensor>& x, int64_t rows, ScalarType dtype) {
    STD_TORCH_CHECK(!x || (x->numel() == panels * rows * N && x->scalar_type() == dtype),
                    "rolls_ahead: state must be int64 (..., 24, N) and float64 (..., 13, N)");
    return x ? std::optional(contiguous(*x)) : std::nullopt;
  };
  const std::optional<Tensor> before_counts = check_before(before_counts_, 24, ScalarType::Long),
                              before_sums = check_before(before_sums_, 13, ScalarType::Double);
  const Tensor rolls = contiguous(rolls_), has_price = contiguous(has_price_), returns = contiguous(returns_);
  const auto shape = [&](std::initializer_list<int64_t> rest) {
    std::vector<int64_t> sizes(returns.sizes().begin(), returns.sizes().end() - 2);
    sizes.insert(sizes.end(), rest);
    return sizes;
  };
  Tensor passed = new_empty(returns, returns.sizes(), ScalarType::Bool),
         counts = new_empty(returns, shape({L, H, N}), ScalarType::Long), shift = new_empty(returns, shape({L, H, N})),
         moments = new_empty(returns, shape({L, kMoments, N}), ScalarType::Double),
         next_counts = new_empty(returns, shape({24, N}), ScalarType::Long),
         next_sums = new_empty(returns, shape({13, N}), ScalarType::Double);
  dispatch("rolls_ahead", returns, [&]<typename scalar_t>() {
    RollScan<scalar_t> scan{rolls.const_data_ptr<int64_t>(),
                            has_price.const_data_ptr<bool>(),
                            returns.const_data_ptr<scalar_t>(),
                            before_counts ? before_counts->const_data_ptr<int64_t>() : nullptr,
                            before_sums ? before_sums->const_data_ptr<double>() : nullptr,
                            passed.mutable_data_ptr<bool>(),
                            counts.mutable_data_ptr<int64_t>(),
                            shift.mutable_data_ptr<scalar_t>(),
                            moments.mutable_data_ptr<double>(),
                            next_counts.mutable_data_ptr<int64_t>(),
                            next_sums.mutable_data_ptr<double>(),
                            {},
                            0,
                            H,
                            0,
                            T,
                            R,
                            N,
                            L,
                            prior};
    for (; scan.first < H; scan.first += kHorizons) {
      scan.H = std::min(kHorizons, H - scan.first);
      std::copy_n(horizons.begin() + scan.first, scan.H, scan.horizons);
      for_each_panel(returns, panels * N, scan);
    }
  });
  return {shift, counts, moments, passed, next_counts, next_sums};
}

}  // namespace

COMMODITY_KERNEL(rolls_ahead,
                 "(Tensor rolls, Tensor has_price, Tensor returns, SymInt[] horizons, SymInt? last_rows=None, float "
                 "prior=3., Tensor? before_counts=None, Tensor? before_sums=None) -> (Tensor, Tensor, Tensor, Tensor, "
                 "Tensor, Tensor)")
