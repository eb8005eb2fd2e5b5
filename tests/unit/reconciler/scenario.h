// Views to decide on, built in a line or two, and what a decision says, taken apart.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "reconciler/decide.h"
#include "reconciler/names.h"
#include "reconciler/types.h"

namespace holdfast::reconciler::testing {

inline constexpr const char* kUid = "8c5d3a52-1f4e-4b7e-9a53-0d6a0b1f2c3d";
inline constexpr const char* kJobName = "train";
inline constexpr const char* kNode = "node-a";

// Now, in every view: an even second in 2026.
Time now();

// A job that nobody has looked at yet; defaults of the schema.
JobView new_job();
// Running `attempt` since 100 s, with its start and node on record (when a pod stands behind it),
// no pod in the view.
JobView running_job(std::int64_t attempt = 1);
// Some phase, one attempt behind it where the phase allows, no pod in the view.
JobView job_in(Phase phase);

// Adds our pod of this attempt, bound to kNode; Running ones started 90 s ago.
PodView& add_pod(JobView& view, std::int64_t attempt, PodPhase phase);
// The same, ended with this exit code 5 s ago.
PodView& add_ended_pod(JobView& view, std::int64_t attempt, int exit_code);
// One container more, which has not started, runs, or has ended well.
enum class Progress { kWaits, kRuns, kEnded };
ContainerView& add_container(PodView& pod, const std::string& name, Progress progress);
// Was told to go this long ago, and its grace of 30 s runs from then.
void delete_pod(PodView& pod, seconds ago);

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
// The place of the first such write; the number of writes if there is none.
template <class W>
std::size_t place(const Decision& decision) {
  std::size_t i = 0;
  while (i < decision.writes.size() && !std::holds_alternative<W>(decision.writes[i])) ++i;
  return i;
}

// decide() with every live look that it asks for.
Decision settle(JobView view, Time at = now());
// The status write of settle(); fails the test and answers what stood there if there is none.
WriteStatus written(const JobView& view, Time at = now());
// The status that stands after settle().
Status after(const JobView& view, Time at = now());

bool has_condition(const Status& status, const std::string& type, const std::string& reason);

}  // namespace holdfast::reconciler::testing
