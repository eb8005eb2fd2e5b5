// What can go wrong with one request, and the names of requests and of points.
//
// A point is one request of one replica in one scenario, by its place among that replica's requests
// in a run without faults, and one mishap. Up to it a run is the same, bit for bit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::simulation {

enum class Mishap {
  // The replica dies before it was sent; after the API server took it, and before the answer; right
  // after the answer came.
  kCrashBefore,
  kCrashApplied,
  kCrashAnswered,
  // Nobody dies. What is lost is known by a reset, or only by the time-out.
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
// Known only by the time-out.
bool is_silent(Mishap mishap);

struct Call {
  std::string kind;  // "PUT durablejobs.status", "WATCH pods"
  bool writes = false;
};
Call call_of(const std::string& method, const std::string& target);

struct Point {
  int replica = 0;
  std::size_t call = 0;  // the how-manieth of its requests, from zero
  Mishap mishap = Mishap::kCrashBefore;
};

// "r0/PUT-durablejobs.status-2/crash-applied": the second request of its kind.
std::string name_of(const Point& point, const std::vector<Call>& calls);

}  // namespace holdfast::simulation
