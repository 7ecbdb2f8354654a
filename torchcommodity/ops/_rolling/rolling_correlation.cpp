// Rolling Pearson correlation of every pair over (..., T, N): matrices (..., T, N, N), or the pairs i < j,
// (..., T, N (N - 1) / 2). correlation_window.h explains the scheme.
#include <cstring>

#include "correlation_window.h"

using namespace commodity;

namespace {

constexpr int64_t kTileLanes = 1 << 14;  // suffix sums of one tile of pairs, which stay in the cache

template <typename scalar_t>
scalar_t clip(double r) {
  return static_cast<scalar_t>(r > 1 ? 1 : r < -1 ? -1 : r);  // keeps NaN
}

// The output of one panel.
template <typename scalar_t>
struct Output {
  scalar_t* y;
  const int64_t assets;
  const bool packed;

  int64_t size() const { return packed ? assets * (assets - 1) / 2 : assets * assets; }
  scalar_t* row(int64_t t) const { return y + t * size(); }

  void write(scalar_t* row, int64_t i, int64_t j, scalar_t r) const {
    if (packed)
      row[i * (2 * assets - i - 1) / 2 + j - i - 1] = r;
    else
      row[i * assets + j] = row[j * assets + i] = r;
  }
};

// Correlations of four groups of windows; correct in the windows without missing values.
template <typename scalar_t>
struct CompletePairs {
  typedef scalar_t Narrow __attribute__((vector_size(kLanes * sizeof(scalar_t))));
  GroupBatch batch;
  AlignedVector<GroupLanes> suffix, prefix;
  std::vector<scalar_t> r;      // the four lanes of each pair, side by side
  std::vector<int32_t> source;  // for each output element of a tile, the first lane of its pair in r
  std::vector<scalar_t> unused_row;

  CompletePairs(int64_t assets, int64_t window) : batch(assets, window), unused_row(assets * assets) {}

  void run(const Output<scalar_t>* outputs, int64_t groups) {
    batch.compute_columns();
    const int64_t N = batch.assets;
    for (int64_t i = 0, next; i < N; i = next) {
      int64_t pairs = 0;
      for (next = i; next < N && (next == i || pairs + N - 1 - next <= kTileLanes / batch.window); ++next)
        pairs += N - 1 - next;
      run_tile(i, next, pairs, outputs, groups);
    }
  }

 private:
  void add(int64_t row, int64_t first, int64_t last, const GroupLanes* before, GroupLanes* after) const {
    const GroupLanes* x = &batch.x[row * batch.assets];
    for (int64_t i = first; i < last; ++i) {
      const GroupLanes x_i = x[i];
      for (int64_t j = i + 1; j < batch.assets; ++j) *after++ = *before++ + x_i * x[j];
    }
  }

  // Columns [first, last) against all columns after them.
  void run_tile(int64_t first, int64_t last, int64_t pairs, const Output<scalar_t>* outputs, int64_t groups) {
    const int64_t N = batch.assets, window = batch.window;
    suffix.resize(window * pairs);
    prefix.assign(pairs, GroupLanes{});
    r.resize((pairs + last - first) * kLanes);
    find_sources(first, last, pairs, outputs->packed);
    for (int64_t row = window - 1; row >= 0; --row) {
      GroupLanes* after = suffix.data() + row * pairs;
      add(row, first, last, row + 1 < window ? after + pairs : prefix.data(), after);
    }
    for (int64_t w = 0; w < window; ++w) {
      if (w > 0) add(w + window - 1, first, last, prefix.data(), prefix.data());
      correlate(first, last, suffix.data() + w * pairs, &batch.sum[w * N], &batch.scale[w * N]);
      scalar_t* rows[kLanes];
      for (int l = 0; l < kLanes; ++l) {
        const bool used = l < groups && w < batch.windows[l];
        rows[l] = used ? outputs[l].row(batch.begin[l] + w + window - 1) : unused_row.data();
      }
      if (outputs->packed)
        write_elements(source.data(), pairs, first * (2 * N - first - 1) / 2, rows);
      else
        write_matrices(first, last, rows);
    }
  }

  void find_sources(int64_t first, int64_t last, int64_t pairs, bool packed) {
    const auto before = [&](int64_t i) { return (i - first) * (2 * batch.assets - i - first - 1) / 2 - i - 1; };
    source.clear();
    for (int64_t k = 0; packed && k < pairs; ++k) source.push_back(k * kLanes);
    for (int64_t i = first; !packed && i < batch.assets; ++i)
      for (int64_t j = first; j < (i < last ? batch.assets : last); ++j)
        source.push_back(kLanes * (i == j ? pairs + i - first : before(std::min(i, j)) + std::max(i, j)));
  }

  void correlate(int64_t first, int64_t last, const GroupLanes* window_suffix, const GroupLanes* sum,
                 const GroupLanes* scale) {
    const GroupLanes* window_prefix = prefix.data();
    scalar_t *pair = r.data(), *diagonal = pair + prefix.size() * kLanes;
    for (int64_t i = first; i < last; ++i) {
      const GroupLanes mean = sum[i] / static_cast<double>(batch.window), scale_i = scale[i];
      for (int64_t j = i + 1; j < batch.assets; ++j) {
        GroupLanes value = (*window_suffix++ + *window_prefix++ - mean * sum[j]) * (scale_i * scale[j]);
        value = value > 1.0 ? GroupLanes{} + 1.0 : value;  // keeps NaN
        value = value < -1.0 ? GroupLanes{} - 1.0 : value;
        store_lanes(value, pair), pair += kLanes;
      }
      store_lanes(scale_i * 0.0 + 1.0, diagonal), diagonal += kLanes;
    }
  }

  static void store_lanes(const GroupLanes& value, scalar_t* to) {
    const Narrow narrow = __builtin_convertvector(value, Narrow);
    std::memcpy(to, &narrow, sizeof(Narrow));
  }

  void load_lanes(int32_t first, Narrow& value) const { std::memcpy(&value, &r[first], sizeof(Narrow)); }

  void write_matrices(int64_t first, int64_t last, scalar_t* const* rows) const {
    const int32_t* pairs = source.data();
    for (int64_t i = first; i < batch.assets; ++i) {
      const int64_t count = (i < last ? batch.assets : last) - first;
      write_elements(pairs, count, i * batch.assets + first, rows);
      pairs += count;
    }
  }

  // Writes `count` elements, taken from the given pairs, to each lane's row from `offset` on: a transpose of r.
  void write_elements(const int32_t* pairs, int64_t count, int64_t offset, scalar_t* const* rows) const {
    int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
      Narrow a, b, c, d;
      load_lanes(pairs[k], a), load_lanes(pairs[k + 1], b), load_lanes(pairs[k + 2], c), load_lanes(pairs[k + 3], d);
      const Narrow low = __builtin_shufflevector(a, b, 0, 4, 1, 5), low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Narrow high = __builtin_shufflevector(a, b, 2, 6, 3, 7), high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const Narrow transposed[kLanes] = {
          __builtin_shufflevector(low, low2, 0, 1, 4, 5), __builtin_shufflevector(low, low2, 2, 3, 6, 7),
          __builtin_shufflevector(high, high2, 0, 1, 4, 5), __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
      for (int l = 0; l < kLanes; ++l) std::memcpy(rows[l] + offset + k, &transposed[l], sizeof(Narrow));
    }
    for (; k < count; ++k)
      for (int l = 0; l < kLanes; ++l) rows[l][offset + k] = r[pairs[k] + l];
  }
};

// Recomputes, in one group, the correlations of columns with missing values, in the windows that contain one.
template <typename scalar_t>
struct IncompletePairs {
  WindowGroup group;
  std::vector<char> incomplete;  // by window
  std::vector<double> equal_rows, previous;

  IncompletePairs(int64_t assets, int64_t window)
      : group(assets, window), incomplete(window), equal_rows(2 * group.width), previous(2 * group.width) {}

  void run(int64_t min_periods, const Output<scalar_t>& output) {
    for (int64_t i = 0; i < group.assets; ++i)
      if (find_incomplete(i)) min_periods < group.window ? run_column(i, min_periods, output) : write_nan(i, output);
  }

 private:
  int64_t first_window() const { return group.begin < 0 ? 1 : 0; }  // window 0 may end before the panel begins

  bool find_incomplete(int64_t i) {
    bool any = false;
    for (int64_t r = 0, missing = -1; r < group.windows + group.window - 1; ++r) {
      if (group.valid[r * group.width + i] == 0) missing = r;
      const int64_t w = r - group.window + 1;
      if (w >= 0) any |= incomplete[w] = missing >= w;
    }
    return any;
  }

  void write_nan(int64_t i, const Output<scalar_t>& output) const {
    for (int64_t w = first_window(); w < group.windows; ++w)
      for (int64_t j = 0; incomplete[w] && j < group.assets; ++j) write(output, w, i, j, NAN);
  }

  void write(const Output<scalar_t>& output, int64_t w, int64_t i, int64_t j, scalar_t r) const {
    if (i != j || !output.packed) output.write(output.row(group.end(w)), std::min(i, j), std::max(i, j), r);
  }

  void run_column(int64_t i, int64_t min_periods, const Output<scalar_t>& output) {
    PairSums sums(group, i);
    std::fill(equal_rows.begin(), equal_rows.end(), 0.0), std::fill(previous.begin(), previous.end(), 0.0);
    for (int64_t r = 0; r < group.window - 1; ++r) count_equal_rows(r, i);
    for (int64_t w = 0; w < group.windows; ++w) {
      count_equal_rows(w + group.window - 1, i);
      sums.advance(w);
      for (int64_t j = 0; w >= first_window() && incomplete[w] && j < group.assets; ++j) {
        const double count = sums.total(PairSums::kCount, j);
        const double x = sums.total(PairSums::kX, j), y = sums.total(PairSums::kY, j);
        const double xx = sums.total(PairSums::kXX, j) - x * x / count;
        const double yy = sums.total(PairSums::kYY, j) - y * y / count;
        const double xy = sums.total(PairSums::kXY, j) - x * y / count;
        const bool varies = equal_rows[j] < count && equal_rows[group.width + j] < count && xx > 0 && yy > 0;
        const double r = varies && count >= min_periods ? xy * (1 / std::sqrt(xx) * (1 / std::sqrt(yy))) : NAN;
        write(output, w, i, j, i == j && r == r ? scalar_t(1) : clip<scalar_t>(r));
      }
    }
  }

  // For each pair, the number of latest common rows with the same value in i, and the same in j.
  void count_equal_rows(int64_t r, int64_t i) {
    const int64_t N = group.width;
    const double *x = &group.x[r * N], *valid = &group.valid[r * N], valid_i = valid[i], x_i = x[i];
    double *equal_j = &equal_rows[N], *previous_j = &previous[N];
    for (int64_t j = 0; j < N; ++j) {
      const bool common = valid_i * valid[j] != 0;
      equal_rows[j] = common ? (x_i == previous[j] ? equal_rows[j] + 1 : 1) : equal_rows[j];
      equal_j[j] = common ? (x[j] == previous_j[j] ? equal_j[j] + 1 : 1) : equal_j[j];
      previous[j] = common ? x_i : previous[j];
      previous_j[j] = common ? x[j] : previous_j[j];
    }
  }
};

COMMODITY_SIMD void run_complete(CompletePairs<float>& pairs, const Output<float>* outputs, int64_t groups) {
  pairs.run(outputs, groups);
}
COMMODITY_SIMD void run_complete(CompletePairs<double>& pairs, const Output<double>* outputs, int64_t groups) {
  pairs.run(outputs, groups);
}
COMMODITY_SIMD void run_incomplete(IncompletePairs<float>& pairs, int64_t min_periods, const Output<float>& output) {
  pairs.run(min_periods, output);
}
COMMODITY_SIMD void run_incomplete(IncompletePairs<double>& pairs, int64_t min_periods, const Output<double>& output) {
  pairs.run(min_periods, output);
}

template <typename scalar_t>
void run(const Tensor& returns, int64_t window, int64_t min_periods, bool packed, Tensor& y) {
  const Panels panels(returns);
  const int64_t N = panels.assets, groups = std::max<int64_t>(1, panels.steps / window), all = panels.batch * groups;
  const scalar_t* x = returns.const_data_ptr<scalar_t>();
  scalar_t* r = y.mutable_data_ptr<scalar_t>();
  const auto output_of = [&](int64_t panel) {
    const Output<scalar_t> first{r, N, packed};
    return Output<scalar_t>{r + panel * panels.steps * first.size(), N, packed};
  };
  const int64_t work = kLanes * window * N * (N + 8), grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
  parallel_for(0, (all + kLanes - 1) / kLanes, grain, [&](int64_t first, int64_t last) {
    CompletePairs<scalar_t> complete(N, window);
    IncompletePairs<scalar_t> incomplete(N, window);
    for (int64_t k = first * kLanes; k < std::min(last * kLanes, all); k += kLanes) {
      const int64_t lanes = std::min<int64_t>(kLanes, all - k);
      std::vector<Output<scalar_t>> outputs;
      for (int64_t l = 0; l < kLanes; ++l) {
        const int64_t group = k + std::min(l, lanes - 1), panel = group / groups, begin = group % groups * window;
        complete.batch.load(l, x + panel * panels.size(), begin, panels.steps);
        outputs.push_back(output_of(panel));
      }
      run_complete(complete, outputs.data(), lanes);
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t begin = complete.batch.begin[l];
        const scalar_t* panel = x + (k + l) / groups * panels.size();
        if (begin == 0)
          incomplete.group.load(panel, -window, panels.steps), run_incomplete(incomplete, min_periods, outputs[l]);
        if (!complete.batch.complete[l])
          incomplete.group.load(panel, begin, panels.steps), run_incomplete(incomplete, min_periods, outputs[l]);
      }
    }
  });
}

Tensor correlations(const Tensor& returns_, int64_t window, int64_t min_periods, bool packed) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation: returns (..., T, N), window >= 1");
  window = limit_window(window, returns_.size(-2));
  const Tensor returns = contiguous(returns_);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  const int64_t N = shape.back();
  if (packed)
    shape.back() = N * (N - 1) / 2;
  else
    shape.push_back(N);
  Tensor y = on_huge_pages(new_empty(returns, shape));
  dispatch("rolling_correlation", returns,
           [&]<typename scalar_t>() { run<scalar_t>(returns, window, min_periods, packed, y); });
  return y;
}

Tensor rolling_correlation(const Tensor& returns, int64_t window, std::optional<int64_t> min_periods) {
  return correlations(returns, window, min_periods.value_or(window), false);
}

Tensor rolling_correlation_pairs(const Tensor& returns, int64_t window, std::optional<int64_t> min_periods) {
  return correlations(returns, window, min_periods.value_or(window), true);
}

}  // namespace

COMMODITY_OPERATOR(rolling_correlation, "(Tensor returns, SymInt window, SymInt? min_periods=None) -> Tensor")
COMMODITY_OPERATOR(rolling_correlation_pairs, "(Tensor returns, SymInt window, SymInt? min_periods=None) -> Tensor")
