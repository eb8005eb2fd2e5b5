// What the parts of Liveness share. Internal to them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/simulation/liveness.h"

namespace holdfast::simulation {

// A reconcile takes a second at most; half of one goes by between two looks.
inline constexpr Duration kReconcile = std::chrono::milliseconds(1000);
inline constexpr Duration kLook = std::chrono::milliseconds(500);
// The server's time is known to a second and a round trip.
inline constexpr Duration kServerTime = std::chrono::milliseconds(1200);
// Nobody watches a settled job: the walk finds what a restart has forgotten, and edits
// (operator/jobs/finished_jobs.h).
inline constexpr Duration kWalked = std::chrono::minutes(11);
// The few jobs whose end does not settle them take turns (operator/jobs/settle_line.h).
inline constexpr Duration kSettled = std::chrono::seconds(30);
// A job that waits in its queue says so after this long.
inline constexpr Duration kQueueNotice = std::chrono::seconds(1);
// A job that waits for a slot says so after this long. Slots may go to other jobs meanwhile.
inline constexpr Duration kPoolNotice = std::chrono::seconds(60);

struct Liveness::Job {
  std::string key;
  const reconciler::Job& job;
  std::vector<reconciler::PodView> pods;              // owned by it
  std::vector<const reconciler::PodView*> current{};  // for each run in its status; null: no pod

  std::int64_t intents_without_pod() const {
    std::int64_t count = 0;
    for (std::size_t place = 0; place < job.status.runs.size(); ++place) {
      if (job.status.runs[place].open() && !current[place]) ++count;
    }
    return count;
  }
  std::int64_t open_runs() const {
    const auto& runs = job.status.runs;
    return std::count_if(runs.begin(), runs.end(),
                         [](const reconciler::Run& run) { return run.open(); });
  }
};

}  // namespace holdfast::simulation
