// Columns side by side in 32-byte vectors, whatever the instruction set: the compiler maps them to its registers.
// A kernel that walks through time with its state in such vectors keeps the state in registers.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace commodity {

// The vectors of a processor: 32 bytes on all, 64 with AVX-512. A function that is marked COMMODITY_WIDE is compiled
// for AVX-512, together with what is inlined into it; it may run only where has_wide_vectors().
#if defined(__x86_64__) && defined(__clang__)
#define COMMODITY_WIDE __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#elif defined(__x86_64__) && defined(__GNUC__)
#define COMMODITY_WIDE __attribute__((flatten, target("avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512")))
#else
#define COMMODITY_WIDE
#endif

// Without __builtin_cpu_supports, for which zig links a library whose memcpy replaces the faster one of glibc.
inline bool has_wide_vectors() {
#if defined(__x86_64__)
  static const bool has = [] {
    constexpr unsigned features = bit_AVX512F | bit_AVX512VL | bit_AVX512BW | bit_AVX512DQ;
    constexpr unsigned registers = 0xe6;  // that the system saves: vectors and masks
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    asm("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & registers) == registers && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & features) == features;
  }();
  return has;
#else
  return false;
#endif
}

template <typename scalar_t>
struct Simd {
  static constexpr int count = 32 / sizeof(scalar_t);
  typedef scalar_t type __attribute__((vector_size(32)));
};
template <typename scalar_t>
using Vec = typename Simd<scalar_t>::type;

// std::vector ignores alignment that is given by an attribute, so its allocator aligns to cache lines.
template <typename Value>
struct CacheLineAllocator {
  using value_type = Value;
  static constexpr std::align_val_t line{64};
  Value* allocate(size_t count) { return static_cast<Value*>(::operator new(count * sizeof(Value), line)); }
  void deallocate(Value* values, size_t) { ::operator delete(values, line); }
  bool operator==(const CacheLineAllocator&) const = default;
};

template <typename Value>
using AlignedVector = std::vector<Value, CacheLineAllocator<Value>>;

// Loads and stores convert between the precision of memory and that of the vector.
template <typename number_t, typename scalar_t>
inline void load(Vec<number_t>& x, const scalar_t* from) {
  typedef scalar_t Row __attribute__((vector_size(Simd<number_t>::count * sizeof(scalar_t))));
  Row row;
  std::memcpy(&row, from, sizeof(Row));
  x = __builtin_convertvector(row, Vec<number_t>);
}

template <typename number_t, typename scalar_t>
inline void store(const Vec<number_t>& x, scalar_t* to) {
  typedef scalar_t Row __attribute__((vector_size(Simd<number_t>::count * sizeof(scalar_t))));
  const Row row = __builtin_convertvector(x, Row);
  std::memcpy(to, &row, sizeof(Row));
}

// The same for one column, so that a kernel can be written once for a vector of columns and for a single one.
template <typename number_t, typename scalar_t>
inline void load(number_t& x, const scalar_t* from) {
  x = *from;
}

template <typename number_t, typename scalar_t>
inline void store(const number_t& x, scalar_t* to) {
  *to = static_cast<scalar_t>(x);
}

// In place. The functions may set errno, which keeps the compiler from using the instruction for a vector.
template <typename scalar_t>
inline void square_root(Vec<scalar_t>& x) {
#if defined(__AVX__)
  if constexpr (sizeof(scalar_t) == sizeof(double)) return x = _mm256_sqrt_pd(x), void();
#endif
  for (int l = 0; l < Simd<scalar_t>::count; ++l) x[l] = std::sqrt(x[l]);
}

template <typename number_t>
inline void square_root(number_t& x) {
  x = std::sqrt(x);
}

#if !defined(__CUDACC__)  // nvcc does not expand a pack in __builtin_shufflevector
// a0 b0 a1 b1 ...: the first half in `low`, the second half in `high`.
template <typename scalar_t>
inline void zip(const Vec<scalar_t>& a, const Vec<scalar_t>& b, Vec<scalar_t>& low, Vec<scalar_t>& high) {
  constexpr int count = Simd<scalar_t>::count;
  [&]<int... k>(std::integer_sequence<int, k...>) {
    low = __builtin_shufflevector(a, b, (k / 2 + k % 2 * count)...);
    high = __builtin_shufflevector(a, b, (count / 2 + k / 2 + k % 2 * count)...);
  }(std::make_integer_sequence<int, count>());
}

// From four vectors, one per channel, to the four channels of each column in a row. For four columns it is its own
// inverse: a 4 x 4 transpose.
template <typename scalar_t>
inline void interleave(const Vec<scalar_t> (&x)[4], Vec<scalar_t> (&to)[4]) {
  Vec<scalar_t> even[2], odd[2];
  zip<scalar_t>(x[0], x[2], even[0], even[1]), zip<scalar_t>(x[1], x[3], odd[0], odd[1]);
  zip<scalar_t>(even[0], odd[0], to[0], to[1]), zip<scalar_t>(even[1], odd[1], to[2], to[3]);
}
#endif

}  // namespace commodity
