// What is needed soon, fetched from memory.

#pragma once

namespace {

inline void prefetch([[maybe_unused]] const void* place) {
#if defined(__GNUC__)
    __builtin_prefetch(place);
#endif
}

}  // namespace
