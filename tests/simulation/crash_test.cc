// Every crash point: for each scenario, with one replica and with two, each request that a replica
// makes is hit by each mishap in a run of its own.
//
// HOLDFAST_CRASH_POINT=retry/2/r0/PUT-durablejobs.status-3/crash-applied runs that one alone and
// says what happened; retry/2 alone reports the run without a mishap. HOLDFAST_CRASH_ALL=1 tries
// also in each scenario what replicas ask for before there is a job. HOLDFAST_CRASH_HASHES=1 prints
// for each scenario a hash of all that happens at all of its points.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "tests/simulation/crash_trial.h"

namespace holdfast::simulation {
namespace {

struct Case {
  const Scenario* scenario;
  int replicas;
  std::string name() const { return scenario->name + "/" + std::to_string(replicas); }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Scenario& scenario : scenarios()) {
    for (int replicas = scenario.fewest_replicas; replicas <= 2; ++replicas) {
      all.push_back({&scenario, replicas});
    }
  }
  return all;
}

std::string asked_point() {
  const char* const asked = std::getenv("HOLDFAST_CRASH_POINT");
  return asked ? asked : "";
}

void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name(); }

class CrashPoints : public ::testing::TestWithParam<Case> {};

// So that what is enumerated cannot quietly become nothing.
void expect_enough(const Scenario& scenario, const std::vector<std::vector<Call>>& calls) {
  std::map<std::string, int> seen;
  for (const auto& of_one : calls) {
    EXPECT_GE(of_one.size(), 9u) << "a replica hardly does anything";
    for (const Call& call : of_one) ++seen[call.kind];
  }
  for (const auto& [kind, least] : scenario.calls) {
    EXPECT_GE(seen[kind], least) << kind << " is not asked for as often as it must be";
  }
}

TEST_P(CrashPoints, EachEndsAsItShould) {
  const Case& tried = GetParam();
  const std::string asked = asked_point();
  if (!asked.empty() && asked.compare(0, tried.name().size(), tried.name()) != 0) {
    GTEST_SKIP() << "another point is asked for";
  }
  const auto began = std::chrono::steady_clock::now();
  std::FILE* const calm_trace = asked == tried.name() ? stdout : nullptr;
  const bool hashes = std::getenv("HOLDFAST_CRASH_HASHES") != nullptr;
  const Trial::Result calm =
      Trial({tried.scenario, tried.replicas, {}, calm_trace, {}, hashes}).run();
  ASSERT_EQ(calm.violation, "") << tried.name() << " without a mishap";
  expect_enough(*tried.scenario, calm.calls);
  if (HasFailure() || calm_trace) return;

  std::uint64_t hash = calm.trace_hash;
  std::size_t points = 0, requests = 0;
  int failed = 0;
  Duration simulated = calm.simulated;
  for (int replica = 0; replica < tried.replicas; ++replica) {
    const auto& calls = calm.calls[static_cast<std::size_t>(replica)];
    const bool all = tried.scenario->tries_start || std::getenv("HOLDFAST_CRASH_ALL");
    const std::size_t first = all ? 0 : calm.before_jobs[static_cast<std::size_t>(replica)];
    for (std::size_t call = first; call < calls.size(); ++call) {
      ++requests;
      for (const Mishap mishap : kMishaps) {
        if (is_duplicate(mishap) && !calls[call].writes) continue;  // reads change nothing
        const Point point{replica, call, mishap};
        const std::string name = tried.name() + "/" + name_of(point, calls);
        if (!asked.empty() && asked != name) continue;
        std::FILE* const trace = asked == name ? stdout : nullptr;
        const Log log = trace ? Log::create(LogLevel::kDebug, LogFormat::kText) : Log();
        const Trial::Result result =
            Trial({tried.scenario, tried.replicas, point, trace, log, hashes}).run();
        ++points;
        hash = mix(hash, result.trace_hash);
        simulated += result.simulated;
        EXPECT_EQ(result.violation, "") << "HOLDFAST_CRASH_POINT=" << name;
        EXPECT_TRUE(result.struck || !result.violation.empty()) << name;
        if (!result.violation.empty() && ++failed == 20) GTEST_FAIL() << "and maybe more";
      }
    }
  }
  if (hashes) {
    std::printf("hash crash/%s %016llx\n", tried.name().c_str(),
                static_cast<unsigned long long>(hash));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%-24s %d replicas: %4zu requests, %5zu points, %5.1f simulated hours, %4.1f s\n",
              tried.scenario->name.c_str(), tried.replicas, requests, points,
              to_seconds(simulated) / 3600, took.count());
}

std::string test_name(const ::testing::TestParamInfo<Case>& tried) {
  std::string name = tried.param.scenario->name + "_" + std::to_string(tried.param.replicas);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CrashPoints, ::testing::ValuesIn(cases()), test_name);

}  // namespace
}  // namespace holdfast::simulation
