// The product of two numbers of 64 bits.

#pragma once

#include <cstdint>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace {

struct Wide {
    std::uint64_t low, high;
};

inline Wide multiply(std::uint64_t a, std::uint64_t b) {
#if defined(_MSC_VER) && defined(_M_X64)
    Wide product;
    product.low = _umul128(a, b, &product.high);
    return product;
#elif defined(_MSC_VER)
    return {a * b, __umulh(a, b)};
#else
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return {static_cast<std::uint64_t>(product), static_cast<std::uint64_t>(product >> 64)};
#endif
}

}  // namespace
