// What metrics say of all jobs is what a walk over them would say.
#include "operator/jobs/job_census.h"

#include <gtest/gtest.h>

#include "tests/unit/reconciler/rng.h"

namespace holdfast::jobs {
namespace {

using reconciler::Phase;
using reconciler::Status;
using reconciler::Waiting;
using std::chrono::seconds;

constexpr Time kStart{seconds(1'700'000'000)};
constexpr int kShards = 4;

Status status_of(Phase phase, std::optional<Time> deadline = std::nullopt) {
  Status status;
  status.phase = phase;
  if (deadline) status.waiting = Waiting{reconciler::Reason::kPodRunning, "", "", deadline};
  return status;
}

using Namespaces = std::map<std::string, JobCensus::Phases>;

bool every(int) { return true; }

TEST(JobCensus, AJobCountsOnceInThePhaseThatItHasNow) {
  JobCensus census;
  EXPECT_TRUE(census.by_namespace(every).empty());
  census.put("a", 0, "team", status_of(Phase::kNone));
  census.put("a", 0, "team", status_of(Phase::kRunning, kStart));
  census.put("b", 1, "web", status_of(Phase::kRunning, kStart - seconds(1)));
  EXPECT_EQ(census.by_namespace(every),
            (Namespaces{{"team", {{"Running", 1}}}, {"web", {{"Running", 1}}}}));
  EXPECT_EQ(census.first_deadline(every), kStart - seconds(1));
  census.put("b", 1, "web", status_of(Phase::kSucceeded));
  EXPECT_EQ(census.first_deadline(every), kStart);
  census.erase("a");
  census.erase("nobody");
  EXPECT_EQ(census.by_namespace(every), (Namespaces{{"web", {{"Succeeded", 1}}}}));
  EXPECT_FALSE(census.first_deadline(every));
}

std::string namespace_of(int number) { return "n" + std::to_string(number % 3); }

TEST(JobCensus, ItSaysWhatAWalkOverTheHeldShardsWould) {
  reconciler::testing::Rng rng(7);
  JobCensus census;
  std::map<std::string, std::pair<int, Status>> jobs;
  for (int step = 0; step < 5000; ++step) {
    const int number = rng.below(60);
    const std::string uid = std::to_string(number);
    if (rng.percent(20)) {
      jobs.erase(uid);
      census.erase(uid);
    } else {
      const auto phase = static_cast<Phase>(rng.below(9));
      const Status status = status_of(
          phase, rng.percent(50) ? std::optional(kStart + seconds(rng.below(9))) : std::nullopt);
      jobs[uid] = {number % kShards, status};
      census.put(uid, number % kShards, namespace_of(number), status);
    }
    const int mask = rng.below(1 << kShards);
    const auto held = [mask](int shard) { return (mask >> shard & 1) != 0; };
    Namespaces namespaces;
    std::optional<Time> first;
    for (const auto& [uid_of, job] : jobs) {
      if (!held(job.first)) continue;
      ++namespaces[namespace_of(std::stoi(uid_of))][to_string(job.second.phase)];
      const auto& waiting = job.second.waiting;
      if (waiting && (!first || *waiting->deadline < *first)) first = waiting->deadline;
    }
    ASSERT_EQ(census.by_namespace(held), namespaces) << "step " << step;
    ASSERT_EQ(census.first_deadline(held), first) << "step " << step;
  }
}

}  // namespace
}  // namespace holdfast::jobs
