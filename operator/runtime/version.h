// What this build is.
#pragma once

namespace holdfast::runtime {

#ifdef HOLDFAST_VERSION
inline constexpr const char* kVersion = HOLDFAST_VERSION;
#else
inline constexpr const char* kVersion = "unknown";
#endif

}  // namespace holdfast::runtime
