// Jobs that wait in queues cost no write: after each has said once that it waits, an hour passes in
// which no job and no queue is written.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/simulation/run.h"

namespace holdfast::simulation {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kQueues = 200;
constexpr int kJobs = 20'000;
constexpr minutes kSettled{15};
constexpr minutes kRest{60};

// The versions of all jobs and queues.
std::map<std::string, std::string> versions(World& world) {
  std::map<std::string, std::string> all;
  for (const char* const resource : {"durablejobs", "jobqueues"}) {
    world.server().for_each(resource, [&](const Json& object) {
      const Json& metadata = at(object, "metadata");
      all[std::string(resource) + "/" + string_at(metadata, "name")] =
          string_at(metadata, "resourceVersion");
    });
  }
  return all;
}

TEST(QueuesRest, JobsThatWaitForAnHourCostNoWrite) {
  int queued = 0;
  std::map<std::string, std::string> before;
  std::map<std::string, std::string> after;
  RunRequest run = run_request(1, "calm", minutes(120));
  run.stop_at = kSettled + kRest + minutes(1);
  run.rewrite = [](Script& script) {
    script.events.clear();
    script.nodes = 1;
    script.replicas = 2;
    script.shards = 8;
    script.clocks.resize(2);
  };
  run.sabotage = [&](World& world) {
    world.scheduler().at(seconds(5), [&] {
      for (int queue = 0; queue < kQueues; ++queue) {
        ASSERT_TRUE(
            world.users().create_queue("team-a", "q-" + std::to_string(queue), {{"hold", true}}));
      }
      for (int job = 0; job < kJobs; ++job) {
        Json spec = lasting_spec(job);
        spec.erase("suspend");
        spec["queue"] = {{"name", "q-" + std::to_string(job % kQueues)}};
        ASSERT_TRUE(world.users().create("team-a", "job-" + std::to_string(job), spec));
      }
    });
    world.scheduler().at(kSettled, [&] {
      before = versions(world);
      world.server().for_each("durablejobs", [&](const Json& job) {
        queued += string_at(at(at(job, "status"), "waiting"), "reason") == "Queued";
      });
    });
    world.scheduler().at(kSettled + kRest, [&] { after = versions(world); });
  };
  EXPECT_EQ(run_seed(run).violation, "");
  EXPECT_EQ(queued, kJobs) << "each has said why it waits";
  EXPECT_EQ(before.size(), static_cast<std::size_t>(kJobs + kQueues));
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace holdfast::simulation
