// exp and log that a compiler can vectorize: no branch, no table, no call. Accurate to 2 ulp.
#pragma once
#include <bit>
#include <limits>

#include "portable.h"

namespace commodity {

// exp(x) = 2^k exp(r) with |r| <= ln 2 / 2, and a Taylor series in r. Zero below -708: no subnormal numbers.
COMMODITY_INLINE double fast_exp(double x) {
  constexpr double shift = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double bounded = x < -709 ? -709 : (x > 710 ? 710 : x);
  const double shifted = bounded * 1.4426950408889634 + shift, k = shifted - shift;
  const double r = (bounded - k * 0x1.62e42fefap-1) - k * 0x1.cf79abc9e3b3ap-40;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = (p * r + 1) * r + 1;
  const double scale = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
  const double y = p * scale;
  return x > 709.4 ? std::numeric_limits<double>::infinity() : (x < -708 ? 0 : y);
}

// log(x) = k ln 2 + 2 artanh((m - 1) / (m + 1)) with m in [sqrt(1/2), sqrt(2)], for positive normal x.
COMMODITY_INLINE double fast_log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  const double exponent = std::bit_cast<double>((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const bool upper = m > 1.4142135623730951;
  const double scaled = upper ? 0.5 * m : m, k = upper ? exponent + 1 : exponent;
  const double s = (scaled - 1) / (scaled + 1), z = s * s;
  double p = 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  return k * 0x1.62e42fefap-1 + (2 * s + (s * z * p + k * 0x1.cf79abc9e3b3ap-40));
}

}  // namespace commodity
