// Builds views to decide on in a line or two, and takes decisions apart.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconciler/job/decide.h"
#include "reconciler/names.h"
#include "reconciler/types.h"
#include "tests/support/only.h"
#include "tests/support/reasons.h"

// A test that fails says "Running", not bytes.
namespace holdfast::api {
inline void PrintTo(Phase phase, std::ostream* out) { *out << '"' << to_string(phase) << '"'; }
}  // namespace holdfast::api

namespace holdfast::reconciler::testing {

using ::testing::HasSubstr;
using ::testing::Not;

inline constexpr const char* kUid = "8c5d3a52-1f4e-4b7e-9a53-0d6a0b1f2c3d";
inline constexpr const char* kJobName = "train";
inline constexpr const char* kNode = "node-a";

// Now, in every view: a whole second in 2026.
Time now();

// A new job with the schema's defaults.
JobView new_job();
// Running `attempt` for 100 s. Its start and node are recorded (if it has a pod). The view has no
// pod.
JobView running_job(std::int64_t attempt = 1);
// The same, and the first attempt's pod runs, or has ended with this code.
JobView job_with_pod();
JobView job_with_ended_pod(int exit_code);
// The same without a pod, and this process has written the intent.
JobView job_before_its_pod();
// A job in any phase, after one attempt if the phase allows. The view has no pod.
JobView job_in(Phase phase);

// An Indexed job. Its first `open` runs are open since 100 s, each with a running pod.
JobView job_of_runs(std::int64_t completions, std::int64_t parallelism, std::int64_t open);
// The pod of this run has ended, 5 s ago. `index` is also its place in status.runs.
void end_pod(JobView& view, std::int64_t index, int exit_code);

// Adds our pod of this attempt, bound to kNode. A Running pod started 90 s ago.
PodView& add_pod(JobView& view, std::int64_t attempt, PodPhase phase);
// The same, ended with this exit code 5 s ago.
PodView& add_ended_pod(JobView& view, std::int64_t attempt, int exit_code);
// Adds a container that has not started, runs, or has succeeded.
enum class Progress { kWaits, kRuns, kEnded };
ContainerView& add_container(PodView& pod, const std::string& name, Progress progress);
// Marks the pod as deleted this long ago, with a grace of 30 s from then.
void delete_pod(PodView& pod, seconds ago);

// This process has asked for the attempt's pod, and has no answer.
void create_pod_slowly(JobView& view, std::int64_t attempt, Duration left = seconds(60));

std::string pod_of(std::int64_t attempt);
void add_history(JobView& view, Outcome outcome, int times);

template <class W>
std::vector<W> all(const Decision& decision) {
  std::vector<W> found;
  for (const Write& write : decision.writes) {
    if (const W* const one = std::get_if<W>(&write)) found.push_back(*one);
  }
  return found;
}
// The index of the first such write; the number of writes if absent.
template <class W>
std::size_t position(const Decision& decision) {
  std::size_t i = 0;
  while (i < decision.writes.size() && !std::holds_alternative<W>(decision.writes[i])) ++i;
  return i;
}

// decide() with all the live reads that it asks for: at `at`, or when the view says (Observed::asked).
Decision settle(JobView view, Time at = now());
// The status write of settle(). Without one, it fails the test and returns the old status.
WriteStatus written(const JobView& view, Time at = now());
// The status after settle().
Status after(const JobView& view, Time at = now());

// For how long the job is left alone; none: without end, or its status is written.
std::optional<Duration> rests_for(const Decision& decision);

// A rule about this exit code of any container.
PolicyRule on_exit_code(PolicyAction action, std::vector<int> codes);

bool has_condition(const Status& status, const std::string& type, const std::string& reason);

}  // namespace holdfast::reconciler::testing
