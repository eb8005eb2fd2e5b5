// The limits of the CRD's schema, in bytes where they are of texts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast::api {

using std::chrono::seconds;

// No count in a status is higher.
inline constexpr std::int64_t kCountLimit = 2'147'483'648;
inline constexpr std::size_t kHistoryLimit = 10;
inline constexpr std::size_t kConditionLimit = 16;
inline constexpr std::size_t kRunLimit = 1000;
inline constexpr std::int64_t kCompletionsLimit = 100'000;
inline constexpr std::int64_t kParallelismLimit = 1000;
inline constexpr std::size_t kStageLimit = 16;          // after the first one
inline constexpr std::size_t kRefusedLimit = 1024;      // bytes of Run::refused
inline constexpr std::size_t kResultLimit = 1024;       // bytes of StageStatus::result
inline constexpr std::int64_t kMaxLeaseSeconds = 3600;  // of a worker
inline constexpr seconds kSuspendedLimit{2'147'483'647};

}  // namespace holdfast::api
