// exp and log that a compiler can vectorize: no branch, no table, no call. Accurate to 2 ulp.
#pragma once
#include <bit>
#include <limits>

#include "portable.h"

namespace commodity {

// The bits of a number; a vector of numbers has a vector of them.
template <typename Number>
struct Bits {
  using type = uint64_t;
};

// exp(x) = 2^k exp(r) with |r| <= ln 2 / 2, and a Taylor series in r. Zero below -708: no subnormal numbers.
template <typename Number>
COMMODITY_INLINE Number fast_exp(const Number& x) {
  using bits_t = typename Bits<Number>::type;
  constexpr double shift = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const Number above = x < -709 ? Number{} - 709 : x, bounded = above > 710 ? Number{} + 710 : above;
  const Number shifted = bounded * 1.4426950408889634 + shift, k = shifted - shift;
  const Number r = (bounded - k * 0x1.62e42fefap-1) - k * 0x1.cf79abc9e3b3ap-40;
  Number p = Number{} + 1.0 / 6227020800;
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
  const Number scale = std::bit_cast<Number>((std::bit_cast<bits_t>(shifted) + 1023) << 52);
  const Number y = x < -708 ? Number{} : p * scale;
  return x > 709.4 ? Number{} + std::numeric_limits<double>::infinity() : y;
}

// log(x) = k ln 2 + 2 artanh((m - 1) / (m + 1)) with m in [sqrt(1/2), sqrt(2)], for positive normal x.
template <typename Number>
COMMODITY_INLINE Number fast_log(const Number& x) {
  using bits_t = typename Bits<Number>::type;
  const bits_t bits = std::bit_cast<bits_t>(x);
  const Number m = std::bit_cast<Number>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  const Number exponent = std::bit_cast<Number>((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const auto upper = m > 1.4142135623730951;
  const Number scaled = upper ? 0.5 * m : m, k = upper ? exponent + 1 : exponent;
  const Number s = (scaled - 1) / (scaled + 1), z = s * s;
  Number p = Number{} + 2.0 / 21;
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
