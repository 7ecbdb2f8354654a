// The cells of lstm and lltm: one unit at one time step, forward and backward, for the CPU and the CUDA kernels.
#pragma once
#include <bit>

#include "portable.h"

namespace commodity {

// exp(x) - 1 without branches, so that loops over units vectorize: exp(x) = 2^n exp(r) with |r| <= ln 2 / 2.
// It is finite for large x, so that tanh is e / (e + 2), and below 2^126 in float, as `quotient` needs.
COMMODITY_INLINE float branchless_expm1(float x) {
  x = x < -87.0f ? -87.0f : x > 87.0f ? 87.0f : x;
  const float shifted = x * 1.44269504f + 12582912.0f;  // rounds to the nearest integer n, in the last bits
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const float scale = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3F800000u);
  const float q = 0.5f + r * (1.66666667e-1f +
                              r * (4.16666667e-2f + r * (8.33333333e-3f + r * (1.38888889e-3f + r * 1.984127e-4f))));
  return scale * (r + r * r * q) + (scale - 1.0f);
}

COMMODITY_INLINE double branchless_expm1(double x) {
  x = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
  const double shifted = x * 1.4426950408889634 + 6755399441055744.0;
  const double n = shifted - 6755399441055744.0;
  const double r = (x - n * 6.93147180369123816490e-1) - n * 1.90821492927058770002e-10;
  const double scale = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) << 52) + 0x3FF0000000000000ull);
  double q = 1.0 / 6227020800;  // Horner: 1 / 13! down to 1 / 2!
  q = q * r + 1.0 / 479001600, q = q * r + 1.0 / 39916800, q = q * r + 1.0 / 3628800, q = q * r + 1.0 / 362880;
  q = q * r + 1.0 / 40320, q = q * r + 1.0 / 5040, q = q * r + 1.0 / 720, q = q * r + 1.0 / 120;
  q = q * r + 1.0 / 24, q = q * r + 1.0 / 6, q = q * r + 0.5;
  return scale * (r + r * r * q) + (scale - 1.0);
}

// x / y; in float on a GPU for 1 <= y <= 2^126, without the branch of a division for other y: quotients interleave.
COMMODITY_INLINE float quotient(float x, float y) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
#else
  return x / y;
#endif
}
COMMODITY_INLINE double quotient(double x, double y) { return x / y; }

template <typename scalar_t>
COMMODITY_INLINE scalar_t sigmoid(scalar_t x) {
  const scalar_t y = quotient(scalar_t(1), scalar_t(2) + branchless_expm1(-x));
  return x < (sizeof(scalar_t) == 4 ? -87 : -708) ? scalar_t(0) : y;
}

template <typename scalar_t>
COMMODITY_INLINE scalar_t branchless_tanh(scalar_t x) {
  const scalar_t e = branchless_expm1(x + x);
  return quotient(e, e + scalar_t(2));
}

// A cell maps the gates z of a unit to their activations a, and these and c to c' and h'.

// c' = f c + i g, h' = o tanh(c'); the gates are in the order i, f, g, o of torch.nn.LSTM.
struct Lstm {
  static constexpr int kGates = 4;

  template <typename scalar_t>
  static COMMODITY_INLINE void activate(const scalar_t (&z)[kGates], scalar_t (&a)[kGates]) {
    a[0] = sigmoid(z[0]), a[1] = sigmoid(z[1]), a[2] = branchless_tanh(z[2]), a[3] = sigmoid(z[3]);
  }

  template <typename scalar_t>
  static COMMODITY_INLINE void step(const scalar_t (&a)[kGates], scalar_t c_previous, scalar_t& c, scalar_t& h) {
    c = a[1] * c_previous + a[0] * a[2];
    h = a[3] * branchless_tanh(c);
  }

  // Gradients of z and c from those of h' and c'; zero where the state is NaN. sum_t: d_c is a sum over time.
  template <typename scalar_t, typename sum_t>
  static COMMODITY_INLINE void backward(const scalar_t (&a)[kGates], scalar_t c_previous, scalar_t c, scalar_t d_h,
                                        sum_t d_c, scalar_t (&d_z)[kGates], sum_t& d_c_previous) {
    const scalar_t i = a[0], f = a[1], g = a[2], o = a[3], y = branchless_tanh(c);
    const sum_t d_c_total = d_c + d_h * o * (1 - y * y);
    const scalar_t d = scalar_t(d_c_total);
    const bool valid = o * y == o * y;
    d_z[0] = valid ? d * g * i * (1 - i) : 0;
    d_z[1] = valid ? d * c_previous * f * (1 - f) : 0;
    d_z[2] = valid ? d * i * (1 - g * g) : 0;
    d_z[3] = valid ? d_h * y * o * (1 - o) : 0;
    d_c_previous = valid ? d_c_total * f : 0;
  }

  // Tangents of c' and h' from those of z and c; zero where the state is NaN.
  template <typename scalar_t>
  static COMMODITY_INLINE void tangent(const scalar_t (&a)[kGates], scalar_t c_previous, scalar_t c,
                                       const scalar_t (&d_z)[kGates], scalar_t d_c_previous, scalar_t& d_c,
                                       scalar_t& d_h) {
    const scalar_t i = a[0], f = a[1], g = a[2], o = a[3], y = branchless_tanh(c);
    const bool valid = o * y == o * y;
    const scalar_t of_gates = g * i * (1 - i) * d_z[0] + c_previous * f * (1 - f) * d_z[1] + i * (1 - g * g) * d_z[2];
    d_c = valid ? f * d_c_previous + of_gates : 0;
    d_h = valid ? o * (1 - y * y) * d_c + y * o * (1 - o) * d_z[3] : 0;
  }
};

// c' = c + i g, h' = o tanh(c') with g = elu(z_g); the gates are in the order i, o, g.
struct Lltm {
  static constexpr int kGates = 3;

  template <typename scalar_t>
  static COMMODITY_INLINE scalar_t elu(scalar_t x) {
    const scalar_t negative = branchless_expm1(x);
    return x > 0 ? x : negative;
  }

  template <typename scalar_t>
  static COMMODITY_INLINE void activate(const scalar_t (&z)[kGates], scalar_t (&a)[kGates]) {
    a[0] = sigmoid(z[0]), a[1] = sigmoid(z[1]), a[2] = elu(z[2]);
  }

  template <typename scalar_t>
  static COMMODITY_INLINE void step(const scalar_t (&a)[kGates], scalar_t c_previous, scalar_t& c, scalar_t& h) {
    c = c_previous + a[0] * a[2];
    h = a[1] * branchless_tanh(c);
  }

  template <typename scalar_t, typename sum_t>
  static COMMODITY_INLINE void backward(const scalar_t (&a)[kGates], scalar_t c_previous, scalar_t c, scalar_t d_h,
                                        sum_t d_c, scalar_t (&d_z)[kGates], sum_t& d_c_previous) {
    const scalar_t i = a[0], o = a[1], g = a[2], y = branchless_tanh(c);
    const sum_t d_c_total = d_c + d_h * o * (1 - y * y);
    const scalar_t d = scalar_t(d_c_total);
    const scalar_t slope = g > 0 ? scalar_t(1) : g + 1;
    const bool valid = o * y == o * y;
    d_z[0] = valid ? d * g * i * (1 - i) : 0;
    d_z[1] = valid ? d_h * y * o * (1 - o) : 0;
    d_z[2] = valid ? d * i * slope : 0;
    d_c_previous = valid ? d_c_total : 0;
  }

  template <typename scalar_t>
  static COMMODITY_INLINE void tangent(const scalar_t (&a)[kGates], scalar_t, scalar_t c, const scalar_t (&d_z)[kGates],
                                       scalar_t d_c_previous, scalar_t& d_c, scalar_t& d_h) {
    const scalar_t i = a[0], o = a[1], g = a[2], y = branchless_tanh(c), slope = g > 0 ? scalar_t(1) : g + 1;
    const bool valid = o * y == o * y;
    d_c = valid ? d_c_previous + g * i * (1 - i) * d_z[0] + i * slope * d_z[2] : 0;
    d_h = valid ? o * (1 - y * y) * d_c + y * o * (1 - o) * d_z[1] : 0;
  }
};

}  // namespace commodity
