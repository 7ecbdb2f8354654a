// LOESS of evenly spaced rows, eight series side by side: the windows and their tricube weights are the same for all.
#pragma once
#include <memory>
#include <utility>

#include "native.h"

namespace commodity {

constexpr int64_t kLanes = 8;     // series side by side: two registers of AVX2, one of AVX-512
constexpr int64_t kTogether = 4;  // fits computed together, so that a row is read once for all of them

struct Smoother {
  int64_t length, degree, jump;
};

// A fit at `row` sees the rows [first, first + count); its coefficients begin at `at`, with zeros around them.
struct Fit {
  int64_t row, first, count, at;
};

enum Table { kLine, kMoment0, kMoment1, kMoment2, kTables };  // the fit itself; the sums of weight x distance^k

// With `beyond`, the row before the first and the row after the last are fitted too.
struct Loess {
  int64_t rows, degree;
  bool beyond;
  std::vector<Fit> fits;
  std::vector<double> tables[kTables];

  Loess(int64_t rows_, const Smoother& smoother, bool beyond_, bool weighted)
      : rows(rows_), degree(smoother.degree), beyond(beyond_) {
    const int64_t room = std::max<int64_t>(rows - smoother.length, 0);
    const int64_t step = std::min(smoother.jump, rows - 1);
    if (beyond) add(-1, 0, smoother, weighted);
    int64_t row = 0, first = 0;
    for (; row < rows; row += step) {
      first = std::clamp<int64_t>(row - smoother.length / 2, 0, room);
      add(row, first, smoother, weighted);
    }
    // a last row off the grid is fitted in the window of the grid's last row, as the authors' program does
    if (row - step < rows - 1) add(rows - 1, first, smoother, weighted);
    if (beyond) add(rows, room, smoother, weighted);
  }

  int64_t size() const { return int64_t(fits.size()); }
  bool every_row() const { return size() == rows + (beyond ? 2 : 0); }

 private:
  static double tricube(int64_t distance, double bandwidth) {
    const double far = std::abs(double(distance)) / bandwidth;
    if (far <= 0.001) return 1;
    const double fall = 1 - far * far * far;
    return far <= 0.999 ? fall * fall * fall : 0;
  }

  void add(int64_t row, int64_t first, const Smoother& smoother, bool weighted) {
    const int64_t count = std::min(smoother.length, rows - first);
    const bool inner = smoother.length <= rows && row - first == smoother.length / 2;
    if (inner && inner_at_ >= 0) return fits.push_back({row, first, count, inner_at_});
    const int64_t at = int64_t(tables[kLine].size()) + kTogether - 1;
    if (inner) inner_at_ = at;
    fits.push_back({row, first, count, at});
    for (int k = 0; k < (weighted ? kTables : 1); ++k) tables[k].resize(at + count + kTogether - 1);
    std::vector<double> weight(count);
    const double extra = std::max<int64_t>(smoother.length - rows, 0) / 2;
    const double bandwidth = double(std::max(row - first, first + count - 1 - row)) + extra;
    for (int64_t j = 0; j < count; ++j) weight[j] = tricube(first + j - row, bandwidth);
    for (int64_t j = 0; weighted && j < count; ++j) {
      const double distance = double(first + j - row);
      tables[kMoment0][at + j] = weight[j];
      tables[kMoment1][at + j] = weight[j] * distance;
      tables[kMoment2][at + j] = weight[j] * distance * distance;
    }
    line(weight, double(first - row), tables[kLine].data() + at);
  }

  void line(const std::vector<double>& weight, double nearest, double* to) const {
    const int64_t count = int64_t(weight.size());
    double total = 0, center = 0, spread = 0;
    for (const double w : weight) total += w;
    for (int64_t j = 0; j < count; ++j) center += weight[j] * (nearest + double(j)) / total;
    for (int64_t j = 0; j < count; ++j) spread += weight[j] * square(nearest + double(j) - center) / total;
    const double tilt = degree && spread > square(0.001 * double(rows - 1)) ? -center / spread : 0;
    for (int64_t j = 0; j < count; ++j) to[j] = weight[j] / total * (1 + tilt * (nearest + double(j) - center));
  }

  static double square(double x) { return x * x; }

  int64_t inner_at_ = -1;
};

#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
#endif

// R fits that share the rows [first, first + count), wherever their coefficients are not zero.
template <int R>
void sum_rows(const double* const* c, int64_t count, const double* x, int64_t stride, double* fit, int64_t next) {
  Four low[R] = {}, high[R] = {};
  const double* k[R];
  for (int r = 0; r < R; ++r) k[r] = c[r];
  for (int64_t j = 0; j < count; ++j, x += stride) {
    const Four a = *reinterpret_cast<const Four*>(x), b = *reinterpret_cast<const Four*>(x + 4);
    for (int r = 0; r < R; ++r) low[r] += k[r][j] * a, high[r] += k[r][j] * b;
  }
  for (int r = 0; r < R; ++r, fit += next) {
    *reinterpret_cast<Four*>(fit) = low[r];
    *reinterpret_cast<Four*>(fit + 4) = high[r];
  }
}

// The transpose: adds what the fits got to the rows that they saw.
template <int R>
void spread_rows(const double* const* c, int64_t count, const double* grad, int64_t next, double* x, int64_t stride) {
  Four low[R], high[R];
  for (int r = 0; r < R; ++r, grad += next) {
    low[r] = *reinterpret_cast<const Four*>(grad);
    high[r] = *reinterpret_cast<const Four*>(grad + 4);
  }
  for (int64_t j = 0; j < count; ++j, x += stride) {
    Four a = *reinterpret_cast<const Four*>(x), b = *reinterpret_cast<const Four*>(x + 4);
    for (int r = 0; r < R; ++r) a += c[r][j] * low[r], b += c[r][j] * high[r];
    *reinterpret_cast<Four*>(x) = a;
    *reinterpret_cast<Four*>(x + 4) = b;
  }
}

// Calls body(fit, how many, coefficients, first, count) for fits that can be computed together.
template <typename Body>
void for_each_group(const Loess& loess, Table table, const Body& body) {
  const double* base = loess.tables[table].data();
  for (int64_t f = 0; f < loess.size();) {
    const Fit& lead = loess.fits[f];
    int64_t many = 1, end = lead.first + lead.count;
    const auto near = [&](const Fit& fit) { return fit.first - lead.first < kTogether && fit.first >= lead.first; };
    while (many < kTogether && f + many < loess.size() && near(loess.fits[f + many])) ++many;
    const double* c[kTogether];
    for (int64_t r = 0; r < many; ++r) {
      const Fit& fit = loess.fits[f + r];
      c[r] = base + fit.at - (fit.first - lead.first);
      end = std::max(end, fit.first + fit.count);
    }
    body(f, many, c, lead.first, end - lead.first);
    f += many;
  }
}

// The sums of a table over the rows of x: fit f to to[f * next].
inline void sum_windows(const Loess& loess, Table table, const double* x, int64_t stride, double* to, int64_t next) {
  for_each_group(loess, table, [&](int64_t f, int64_t many, const double* const* c, int64_t first, int64_t count) {
    const double* from = x + first * stride;
    double* at = to + f * next;
    if (many == 4) return sum_rows<4>(c, count, from, stride, at, next);
    if (many == 3) return sum_rows<3>(c, count, from, stride, at, next);
    if (many == 2) return sum_rows<2>(c, count, from, stride, at, next);
    sum_rows<1>(c, count, from, stride, at, next);
  });
}

inline void spread_windows(const Loess& loess, Table table, const double* grad, int64_t next, double* x,
                           int64_t stride) {
  for_each_group(loess, table, [&](int64_t f, int64_t many, const double* const* c, int64_t first, int64_t count) {
    double* to = x + first * stride;
    const double* at = grad + f * next;
    if (many == 4) return spread_rows<4>(c, count, at, next, to, stride);
    if (many == 3) return spread_rows<3>(c, count, at, next, to, stride);
    if (many == 2) return spread_rows<2>(c, count, at, next, to, stride);
    spread_rows<1>(c, count, at, next, to, stride);
  });
}

// What weighs the sums of each fit: fit = sum0 x total + sum1 x slope. A window without weight takes its fit from
// elsewhere: from the row itself, from another fit, or there is none and it is zero.
struct Balance {
  enum Source : int64_t { kRow = -1, kNone = -2 };
  std::vector<double> total, slope;
  std::vector<int64_t> source;
  bool whole = true;  // no window is without weight
};

inline Balance balance(const Loess& loess, const double* weights, const bool* present, int64_t stride) {
  const int64_t size = loess.size() * kLanes;
  std::vector<double> sums[3] = {std::vector<double>(size), std::vector<double>(size), std::vector<double>(size)};
  for (int k = 0; k < 3; ++k) sum_windows(loess, Table(kMoment0 + k), weights, stride, sums[k].data(), kLanes);
  Balance b{std::vector<double>(size), std::vector<double>(size), std::vector<int64_t>(size)};
  const double least = std::pow(0.001 * double(loess.rows - 1), 2);
  int64_t last[kLanes];
  std::fill_n(last, kLanes, Balance::kNone);
  for (int64_t i = 0; i < size; ++i) {
    const double total = sums[0][i], center = sums[1][i] / total, spread = sums[2][i] / total - center * center;
    const double tilt = loess.degree && spread > least ? center / spread : 0;
    const int64_t row = loess.fits[i / kLanes].row, n = i % kLanes;
    const bool some = total > 0, itself = row >= 0 && row < loess.rows && present[row * stride + n];
    b.total[i] = some ? (1 + tilt * center) / total : 0;
    b.slope[i] = some ? -tilt / total : 0;
    b.whole &= some;
    if (some || itself) last[n] = i;
    b.source[i] = some ? i : itself ? int64_t(Balance::kRow) : last[n];
  }
  for (int64_t i = size - kLanes - 1; i >= 0 && !b.whole; --i)  // none before it: the first one after
    if (b.source[i] == Balance::kNone)
      b.source[i] = b.source[i + kLanes] == Balance::kRow ? i + kLanes : b.source[i + kLanes];
  return b;
}

// Straight lines between fits: row `row` to y[(row + beyond) * stride].
inline void join(const Loess& loess, const double* fit, double* y, int64_t stride) {
  const auto to = [&](int64_t row) { return y + (row + loess.beyond) * stride; };
  for (int64_t f = 0; f < loess.size(); ++f, fit += kLanes) {
    const int64_t row = loess.fits[f].row, steps = f + 1 < loess.size() ? loess.fits[f + 1].row - row : 1;
    for (int64_t k = 0; k < steps; ++k)
      for (int64_t n = 0; n < kLanes; ++n)
        to(row + k)[n] = k ? fit[n] + double(k) / double(steps) * (fit[kLanes + n] - fit[n]) : fit[n];
  }
}

// The transpose; fit is zero before.
inline void part(const Loess& loess, const double* y, int64_t stride, double* fit) {
  const auto from = [&](int64_t row) { return y + (row + loess.beyond) * stride; };
  for (int64_t f = 0; f < loess.size(); ++f, fit += kLanes) {
    const int64_t row = loess.fits[f].row, steps = f + 1 < loess.size() ? loess.fits[f + 1].row - row : 1;
    for (int64_t n = 0; n < kLanes; ++n) fit[n] += from(row)[n];
    for (int64_t k = 1; k < steps; ++k)
      for (int64_t n = 0; n < kLanes; ++n) {
        const double onward = double(k) / double(steps) * from(row + k)[n];
        fit[n] += from(row + k)[n] - onward;
        fit[kLanes + n] += onward;
      }
  }
}

struct Scratch {
  std::vector<double> fit, sums;
};

inline void smooth(const Loess& loess, const double* y, int64_t stride, double* to, int64_t next, Scratch& scratch) {
  if (loess.every_row()) return sum_windows(loess, kLine, y, stride, to, next);
  scratch.fit.resize(loess.size() * kLanes);
  sum_windows(loess, kLine, y, stride, scratch.fit.data(), kLanes);
  join(loess, scratch.fit.data(), to, next);
}

// The same under weights; `weighted` is y times them.
inline void smooth(const Loess& loess, const Balance& b, const double* y, const double* weighted, int64_t stride,
                   double* to, int64_t next, Scratch& scratch) {
  const int64_t size = loess.size() * kLanes;
  scratch.fit.resize(size), scratch.sums.resize(size);
  double *fit = scratch.fit.data(), *sums = scratch.sums.data();
  sum_windows(loess, kMoment0, weighted, stride, fit, kLanes);
  sum_windows(loess, kMoment1, weighted, stride, sums, kLanes);
  for (int64_t i = 0; i < size; ++i) fit[i] = b.total[i] * fit[i] + b.slope[i] * sums[i];
  for (int64_t i = 0; i < size && !b.whole; ++i)
    if (b.source[i] == Balance::kRow) fit[i] = y[loess.fits[i / kLanes].row * stride + i % kLanes];
  for (int64_t i = 0; i < size && !b.whole; ++i)
    if (b.source[i] != Balance::kRow) fit[i] = b.source[i] == Balance::kNone ? 0 : fit[b.source[i]];
  join(loess, fit, to, next);
}

// The transposes of both: add to y what came to the rows of grad.
inline void spread(const Loess& loess, const double* grad, int64_t next, double* y, int64_t stride, Scratch& scratch) {
  if (loess.every_row()) return spread_windows(loess, kLine, grad, next, y, stride);
  scratch.fit.assign(loess.size() * kLanes, 0);
  part(loess, grad, next, scratch.fit.data());
  spread_windows(loess, kLine, scratch.fit.data(), kLanes, y, stride);
}

// Under weights, what goes by them is added to `weighted`, the gradient of y times the weights, and the rest to y.
inline void spread(const Loess& loess, const Balance& b, const double* grad, int64_t next, double* y, double* weighted,
                   int64_t stride, Scratch& scratch) {
  const int64_t size = loess.size() * kLanes;
  scratch.fit.assign(size, 0), scratch.sums.resize(size);
  double *fit = scratch.fit.data(), *sums = scratch.sums.data();
  part(loess, grad, next, fit);
  for (int64_t i = 0; i < size && !b.whole; ++i)
    if (b.source[i] >= 0 && b.source[i] != i) fit[b.source[i]] += std::exchange(fit[i], 0);
  for (int64_t i = 0; i < size && !b.whole; ++i)
    if (b.source[i] == Balance::kRow) y[loess.fits[i / kLanes].row * stride + i % kLanes] += fit[i];
  for (int64_t i = 0; i < size; ++i) sums[i] = b.slope[i] * fit[i], fit[i] *= b.total[i];
  spread_windows(loess, kMoment0, fit, kLanes, weighted, stride);
  spread_windows(loess, kMoment1, sums, kLanes, weighted, stride);
}

}  // namespace commodity
