// Pearson correlation of every pair over the last `window` rows of (..., T, N): matrices (..., T, N, N), or the pairs
// i < j alone, (..., T, N (N - 1) / 2).
#include <cstring>

#include "correlation_window.h"

using namespace commodity;

namespace {

constexpr int64_t kScratch = 1 << 14;  // lanes of suffix sums that are kept together: they stay in the cache

template <typename scalar_t>
scalar_t clip(double r) {
  return static_cast<scalar_t>(r > 1 ? 1 : r < -1 ? -1 : r);  // NaN stays
}

// Where the results of one panel go.
template <typename scalar_t>
struct Target {
  scalar_t* to;
  const int64_t assets;
  const bool packed;

  int64_t size() const { return packed ? assets * (assets - 1) / 2 : assets * assets; }
  scalar_t* row(int64_t t) const { return to + t * size(); }

  void put(scalar_t* row, int64_t i, int64_t j, scalar_t r) const {
    if (packed)
      row[i * (2 * assets - i - 1) / 2 + j - i - 1] = r;
    else
      row[i * assets + j] = row[j * assets + i] = r;
  }
};

// The correlations of a team: right in the windows where nothing is missing.
template <typename scalar_t>
struct Pairs {
  typedef scalar_t Narrow __attribute__((vector_size(kLanes * sizeof(scalar_t))));
  Team team;
  ManyLanes suffix, prefix;
  std::vector<scalar_t> r;     // the lanes of a pair side by side
  std::vector<int32_t> place;  // which pair of r stands there, for each element that a tile of columns fills
  std::vector<scalar_t> nowhere;

  Pairs(int64_t assets, int64_t window) : team(assets, window), nowhere(assets * assets) {}

  void run(const Target<scalar_t>* targets, int64_t members) {
    team.columns();
    const int64_t N = team.assets;
    for (int64_t i = 0, next; i < N; i = next) {
      int64_t pairs = 0;
      for (next = i; next < N && (next == i || pairs + N - 1 - next <= kScratch / team.window); ++next)
        pairs += N - 1 - next;
      tile(i, next, pairs, targets, members);
    }
  }

 private:
  void add(int64_t row, int64_t first, int64_t last, const Lanes* before, Lanes* after) const {
    const Lanes* x = &team.x[row * team.assets];
    for (int64_t i = first; i < last; ++i) {
      const Lanes own = x[i];
      for (int64_t j = i + 1; j < team.assets; ++j) *after++ = *before++ + own * x[j];
    }
  }

  // Columns [first, last) against all after them.
  void tile(int64_t first, int64_t last, int64_t pairs, const Target<scalar_t>* targets, int64_t members) {
    const int64_t N = team.assets, window = team.window;
    suffix.resize(window * pairs);
    prefix.assign(pairs, Lanes{});
    r.resize((pairs + last - first) * kLanes);
    arrange(first, last, pairs, targets->packed);
    for (int64_t row = window - 1; row >= 0; --row) {
      Lanes* after = suffix.data() + row * pairs;
      add(row, first, last, row + 1 < window ? after + pairs : prefix.data(), after);
    }
    for (int64_t w = 0; w < window; ++w) {
      if (w > 0) add(w + window - 1, first, last, prefix.data(), prefix.data());
      finish(first, last, suffix.data() + w * pairs, &team.sum[w * N], &team.scale[w * N]);
      scalar_t* rows[kLanes];
      for (int l = 0; l < kLanes; ++l)
        rows[l] = l < members && w < team.windows[l] ? targets[l].row(team.begin[l] + w + window - 1) : nowhere.data();
      targets->packed ? spill(place.data(), pairs, first * (2 * N - first - 1) / 2, rows) : scatter(first, last, rows);
    }
  }

  void arrange(int64_t first, int64_t last, int64_t pairs, bool packed) {
    const auto before = [&](int64_t i) { return (i - first) * (2 * team.assets - i - first - 1) / 2 - i - 1; };
    place.clear();
    for (int64_t k = 0; packed && k < pairs; ++k) place.push_back(k);
    for (int64_t i = first; !packed && i < team.assets; ++i)
      for (int64_t j = first; j < (i < last ? team.assets : last); ++j)
        place.push_back(i == j ? pairs + i - first : before(std::min(i, j)) + std::max(i, j));
  }

  void finish(int64_t first, int64_t last, const Lanes* before, const Lanes* sum, const Lanes* scale) {
    const Lanes* after = prefix.data();
    scalar_t *to = r.data(), *diagonal = to + prefix.size() * kLanes;
    for (int64_t i = first; i < last; ++i) {
      const Lanes mean = sum[i] / static_cast<double>(team.window), own = scale[i];
      for (int64_t j = i + 1; j < team.assets; ++j) {
        Lanes value = (*before++ + *after++ - mean * sum[j]) * (own * scale[j]);
        value = value > 1.0 ? Lanes{} + 1.0 : value;  // NaN stays
        value = value < -1.0 ? Lanes{} - 1.0 : value;
        put(value, to), to += kLanes;
      }
      put(own * 0.0 + 1.0, diagonal), diagonal += kLanes;
    }
  }

  static void put(const Lanes& value, scalar_t* to) {
    const Narrow narrow = __builtin_convertvector(value, Narrow);
    std::memcpy(to, &narrow, sizeof(Narrow));
  }

  void get(int32_t pair, Narrow& value) const { std::memcpy(&value, &r[pair * kLanes], sizeof(Narrow)); }

  void scatter(int64_t first, int64_t last, scalar_t* const* rows) const {
    const int32_t* from = place.data();
    for (int64_t i = first; i < team.assets; ++i) {
      const int64_t count = (i < last ? team.assets : last) - first;
      spill(from, count, i * team.assets + first, rows);
      from += count;
    }
  }

  // `count` of r, which hold the lanes side by side, to the row of each lane.
  void spill(const int32_t* from, int64_t count, int64_t at, scalar_t* const* rows) const {
    int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
      Narrow a, b, c, d;
      get(from[k], a), get(from[k + 1], b), get(from[k + 2], c), get(from[k + 3], d);
      const Narrow low = __builtin_shufflevector(a, b, 0, 4, 1, 5), low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Narrow high = __builtin_shufflevector(a, b, 2, 6, 3, 7), high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const Narrow across[kLanes] = {
          __builtin_shufflevector(low, low2, 0, 1, 4, 5), __builtin_shufflevector(low, low2, 2, 3, 6, 7),
          __builtin_shufflevector(high, high2, 0, 1, 4, 5), __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
      for (int l = 0; l < kLanes; ++l) std::memcpy(rows[l] + at + k, &across[l], sizeof(Narrow));
    }
    for (; k < count; ++k)
      for (int l = 0; l < kLanes; ++l) rows[l][at + k] = r[from[k] * kLanes + l];
  }
};

// What a column with holes shares with every other, in the windows that hold one.
template <typename scalar_t>
struct Holes {
  Group g;
  std::vector<char> holed;
  std::vector<double> still, previous;

  Holes(int64_t assets, int64_t window) : g(assets, window), holed(window), still(2 * g.width), previous(2 * g.width) {}

  void run(int64_t min_periods, const Target<scalar_t>& target) {
    for (int64_t i = 0; i < g.assets; ++i)
      if (find(i)) min_periods < g.window ? column(i, min_periods, target) : undefined(i, target);
  }

 private:
  int64_t skip() const { return g.begin < 0 ? 1 : 0; }  // window 0 then ends before the panel begins

  bool find(int64_t i) {
    bool any = false;
    for (int64_t r = 0, missing = -1; r < g.windows + g.window - 1; ++r) {
      if (g.present[r * g.width + i] == 0) missing = r;
      const int64_t w = r - g.window + 1;
      if (w >= 0) any |= holed[w] = missing >= w;
    }
    return any;
  }

  void undefined(int64_t i, const Target<scalar_t>& target) const {
    for (int64_t w = skip(); w < g.windows; ++w)
      for (int64_t j = 0; holed[w] && j < g.assets; ++j) put(target, w, i, j, NAN);
  }

  void put(const Target<scalar_t>& target, int64_t w, int64_t i, int64_t j, scalar_t r) const {
    if (i != j || !target.packed) target.put(target.row(g.end(w)), std::min(i, j), std::max(i, j), r);
  }

  void column(int64_t i, int64_t min_periods, const Target<scalar_t>& target) {
    Shared sums(g, i);
    std::fill(still.begin(), still.end(), 0.0), std::fill(previous.begin(), previous.end(), 0.0);
    for (int64_t r = 0; r < g.window - 1; ++r) watch(r, i);
    for (int64_t w = 0; w < g.windows; ++w) {
      watch(w + g.window - 1, i);
      sums.advance(w);
      for (int64_t j = 0; w >= skip() && holed[w] && j < g.assets; ++j) {
        const double count = sums.total(Shared::kCount, j), x = sums.total(Shared::kX, j),
                     y = sums.total(Shared::kY, j);
        const double xx = sums.total(Shared::kXX, j) - x * x / count, yy = sums.total(Shared::kYY, j) - y * y / count;
        const double xy = sums.total(Shared::kXY, j) - x * y / count;
        const bool moves = still[j] < count && still[g.width + j] < count && xx > 0 && yy > 0;
        const double r = moves && count >= min_periods ? xy * (1 / std::sqrt(xx) * (1 / std::sqrt(yy))) : NAN;
        put(target, w, i, j, i == j && r == r ? scalar_t(1) : clip<scalar_t>(r));
      }
    }
  }

  // for how many rows that both have a column has stood still
  void watch(int64_t r, int64_t i) {
    const int64_t N = g.width;
    const double *x = &g.x[r * N], *present = &g.present[r * N], own = present[i], value = x[i];
    double *still_y = &still[N], *previous_y = &previous[N];
    for (int64_t j = 0; j < N; ++j) {
      const bool both = own * present[j] != 0;
      still[j] = both ? (value == previous[j] ? still[j] + 1 : 1) : still[j];
      still_y[j] = both ? (x[j] == previous_y[j] ? still_y[j] + 1 : 1) : still_y[j];
      previous[j] = both ? value : previous[j];
      previous_y[j] = both ? x[j] : previous_y[j];
    }
  }
};

COMMODITY_SIMD void correlate(Pairs<float>& pairs, const Target<float>* to, int64_t members) { pairs.run(to, members); }
COMMODITY_SIMD void correlate(Pairs<double>& pairs, const Target<double>* to, int64_t members) {
  pairs.run(to, members);
}
COMMODITY_SIMD void mend(Holes<float>& holes, int64_t least, const Target<float>& to) { holes.run(least, to); }
COMMODITY_SIMD void mend(Holes<double>& holes, int64_t least, const Target<double>& to) { holes.run(least, to); }

template <typename scalar_t>
void run(const Tensor& returns, int64_t window, int64_t min_periods, bool packed, Tensor& y) {
  const Panels panels(returns);
  const int64_t N = panels.assets, groups = std::max<int64_t>(1, panels.steps / window), all = panels.batch * groups;
  const scalar_t* from = returns.const_data_ptr<scalar_t>();
  scalar_t* to = y.mutable_data_ptr<scalar_t>();
  const auto target = [&](int64_t panel) {
    const Target<scalar_t> first{to, N, packed};
    return Target<scalar_t>{to + panel * panels.steps * first.size(), N, packed};
  };
  const int64_t work = kLanes * window * N * (N + 8);
  torch::stable::parallel_for(0, (all + kLanes - 1) / kLanes, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)),
                              [&](int64_t first, int64_t last) {
                                Pairs<scalar_t> pairs(N, window);
                                Holes<scalar_t> holes(N, window);
                                for (int64_t k = first * kLanes; k < std::min(last * kLanes, all); k += kLanes) {
                                  const int64_t members = std::min<int64_t>(kLanes, all - k);
                                  std::vector<Target<scalar_t>> targets;
                                  for (int64_t l = 0; l < kLanes; ++l) {
                                    const int64_t which = k + std::min(l, members - 1), panel = which / groups,
                                                  begin = which % groups * window;
                                    pairs.team.load(l, from + panel * panels.size(), begin, panels.steps);
                                    targets.push_back(target(panel));
                                  }
                                  correlate(pairs, targets.data(), members);
                                  for (int64_t l = 0; l < members; ++l) {
                                    const int64_t begin = pairs.team.begin[l];
                                    const scalar_t* panel = from + (k + l) / groups * panels.size();
                                    if (begin == 0)
                                      holes.g.load(panel, -window, panels.steps), mend(holes, min_periods, targets[l]);
                                    if (!pairs.team.complete[l])
                                      holes.g.load(panel, begin, panels.steps), mend(holes, min_periods, targets[l]);
                                  }
                                }
                              });
}

Tensor correlations(const Tensor& returns_, int64_t window, int64_t min_periods, bool packed) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation: returns (..., T, N), window >= 1");
  const Tensor returns = contiguous(returns_);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  const int64_t N = shape.back();
  if (packed)
    shape.back() = N * (N - 1) / 2;
  else
    shape.push_back(N);
  Tensor y = on_huge_pages(new_empty(returns, shape));
  THO_DISPATCH_V2(returns.scalar_type(), "rolling_correlation",
                  AT_WRAP([&] { run<scalar_t>(returns, window, min_periods, packed, y); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

Tensor rolling_correlation(const Tensor& returns, int64_t window, int64_t min_periods) {
  return correlations(returns, window, min_periods, false);
}

Tensor rolling_correlation_pairs(const Tensor& returns, int64_t window, int64_t min_periods) {
  return correlations(returns, window, min_periods, true);
}

}  // namespace

COMMODITY_OPERATOR(rolling_correlation, "(Tensor returns, SymInt window, SymInt min_periods) -> Tensor")
COMMODITY_OPERATOR(rolling_correlation_pairs, "(Tensor returns, SymInt window, SymInt min_periods) -> Tensor")
