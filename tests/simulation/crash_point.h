// The mishaps of one request, and the names of requests and points.
//
// A point is one mishap of one request of one replica in one scenario. The request is named by its
// place among the replica's requests in a run without faults. Up to the point, the run is the same
// bit for bit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::simulation {

enum class Mishap {
  // The replica dies: before it sends the request; after the API server applied it, but before the
  // answer; right after the answer.
  kCrashBefore,
  kCrashApplied,
  kCrashAnswered,
  // Nobody dies. The replica learns of the loss by a reset, or only by the timeout.
  kRequestLost,
  kRequestLostSilently,
  kAnswerLost,
  kAnswerLostSilently,
  // A second copy arrives at once, or 3 s later.
  kDuplicateAtOnce,
  kDuplicateLate,
};
inline constexpr Mishap kMishaps[] = {
    Mishap::kCrashBefore,        Mishap::kCrashApplied,        Mishap::kCrashAnswered,
    Mishap::kRequestLost,        Mishap::kRequestLostSilently, Mishap::kAnswerLost,
    Mishap::kAnswerLostSilently, Mishap::kDuplicateAtOnce,     Mishap::kDuplicateLate,
};

const char* to_string(Mishap mishap);
bool is_crash(Mishap mishap);
bool is_duplicate(Mishap mishap);
// True if the replica learns of it only by the timeout.
bool is_silent(Mishap mishap);

struct Call {
  std::string kind;  // "PUT durablejobs.status", "WATCH pods"
  bool writes = false;
};
Call call_of(const std::string& method, const std::string& target);

struct Point {
  int replica = 0;
  std::size_t call = 0;  // the index among its requests, from zero
  Mishap mishap = Mishap::kCrashBefore;
};

// "r0/PUT-durablejobs.status-2/crash-applied": the second request of its kind.
std::string name_of(const Point& point, const std::vector<Call>& calls);

}  // namespace holdfast::simulation
