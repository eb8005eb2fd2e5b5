// The version of this build.
#pragma once

namespace holdfast::runtime {

#ifdef HOLDFAST_VERSION
inline constexpr const char* kVersion = HOLDFAST_VERSION;
#else
inline constexpr const char* kVersion = "unknown";
#endif

}  // namespace holdfast::runtime
