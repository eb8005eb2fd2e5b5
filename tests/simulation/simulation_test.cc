// A share of the simulated world's runs in every test run: a few seeds of each profile, and every
// seed that once found something (seeds.txt). Many more by `make simulate`.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "operator/codecs/job_codec.h"
#include "tests/simulation/run.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {
namespace {

constexpr std::uint64_t kSeedsOfAProfile = 4;

RunRequest request(std::uint64_t seed, const std::string& profile, int minutes) {
  RunRequest run;
  run.seed = seed;
  run.profile = profile;
  run.length = std::chrono::minutes(minutes);
  return run;
}

TEST(Simulation, OneSeedIsOneTrace) {
  const RunResult first = run_seed(request(7, "everything", 10));
  const RunResult second = run_seed(request(7, "everything", 10));
  EXPECT_EQ(first.violation, "");
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.requests, second.requests);
  EXPECT_NE(run_seed(request(8, "everything", 10)).trace_hash, first.trace_hash);
}

// What is left out changes nothing of the rest: that is what shrinking rests on.
TEST(Simulation, AScriptIsTheSameWithAPartLeftOut) {
  RunRequest run = request(7, "network", 10);
  const RunResult whole = run_seed(run);
  run.selection = *Selection::parse("0,1,2,3:0,4,5:1:2");
  const RunResult part = run_seed(run);
  EXPECT_EQ(part.violation, "");
  EXPECT_LT(part.scheduled.size(), whole.scheduled.size());
  EXPECT_EQ(run.selection.text(), "0,1,2,3:0,4,5:1:2");
}

// A rule that two acts break together: they are what is left, with one request that was struck.
TEST(Simulation, AFailingScriptIsShrunk) {
  RunRequest run = request(2, "network", 20);
  run.sabotage = [](World& world) {
    for (int i = 1; i < 600; ++i) {
      world.scheduler().at(std::chrono::seconds(2 * i), [&world] {
        const Strikes& strikes = world.strikes();
        if (strikes.count(Act::kLoseRequest) > 0 && strikes.count(Act::kBreakWatch) > 0) {
          world.ledger().complain("T1 BothOfThem: as the test has it");
        }
      });
    }
  };
  const RunResult failed = run_seed(run);
  ASSERT_EQ(rule_of(failed.violation), "T1 BothOfThem");
  const Selection shortest = shrink(run, failed, 300);
  ASSERT_EQ(shortest.events.size(), 2u) << shortest.text();
  std::size_t struck = 0;
  for (const auto& [event, strikes] : shortest.events) struck += strikes ? strikes->size() : 0;
  EXPECT_EQ(struck, 1u) << shortest.text();
  run.selection = shortest;
  EXPECT_EQ(rule_of(run_seed(run).violation), "T1 BothOfThem");
}

TEST(Simulation, AProfileIsCalmOrFullOfFaultsAsItSays) {
  const RunResult calm = run_seed(request(1, "calm", 10));
  for (const auto& [act, count] : calm.fired) EXPECT_EQ(act, Act::kCreateJob) << to_string(act);
  EXPECT_GT(run_seed(request(1, "everything", 30)).fired.size(), 25u);
}

// In a world without faults an attempt that is lost is lost falsely, and a minute later each job
// has been looked at and each pod's end is on record. What came just now waits for the second look.
using Attempts = std::set<std::pair<std::string, std::int64_t>>;
Attempts what_is_left(World& world) {
  Attempts left;
  std::map<std::string, std::string> ended;  // pods, by name
  world.server().for_each("pods", [&](const Json& pod) {
    const std::string phase = string_at(at(pod, "status"), "phase");
    if (phase == "Succeeded" || phase == "Failed") {
      ended[string_at(at(pod, "metadata"), "name")] = phase;
    }
  });
  world.server().for_each("durablejobs", [&](const Json& json) {
    const kube::ObjectPtr object = codecs::decode_job(document(json));
    const reconciler::Job& job = static_cast<const codecs::CachedJob&>(*object).job;
    // One that its user gives up while no scheduler takes it is not.
    const bool may_time_out =
        job.spec.schedule_deadline ||
        std::any_of(job.stages.begin(), job.stages.end(), [](const reconciler::Stage& stage) {
          return stage.spec.schedule_deadline.has_value();
        });
    if (job.status.disruptions > 0 && !may_time_out) {
      world.ledger().complain(job.name + " has lost an attempt");
    }
    const bool unseen = job.status.phase == reconciler::Phase::kNone;
    const auto& runs = job.status.runs;
    const bool unrecorded = std::any_of(runs.begin(), runs.end(), [&](const reconciler::Run& run) {
      return run.open() && ended.count(run.pod_name) > 0;
    });
    if (unseen || unrecorded) left.emplace(job.uid, job.status.attempt);
  });
  return left;
}

void complain_of_what_is_left(World& world) {
  world.scheduler().at(world.scheduler().now() + std::chrono::seconds(3),
                       [&world, before = what_is_left(world)] {
                         for (const auto& attempt : what_is_left(world)) {
                           if (before.count(attempt) == 0) continue;
                           world.ledger().complain(attempt.first + " does not go on");
                         }
                       });
}

TEST(Simulation, AnApiServerThatIsAwayForHalfAnHourCostsNoAttemptAndAllGoesOnWithinAMinute) {
  for (std::uint64_t seed = 1; seed <= kSeedsOfAProfile; ++seed) {
    RunRequest run = request(seed, "calm", 60);
    bool down = false;
    run.sabotage = [&down](World& world) {
      using std::chrono::minutes;
      world.scheduler().at(minutes(15), [&] {
        world.gateway().go_down();
        down = true;
      });
      world.scheduler().at(minutes(45), [&] { world.gateway().come_up(); });
      for (const int minute : {46, 59}) {
        world.scheduler().at(minutes(minute), [&] { complain_of_what_is_left(world); });
      }
    };
    EXPECT_EQ(run_seed(run).violation, "") << "seed " << seed;
    EXPECT_TRUE(down);
  }
}

std::size_t shards_of(World& world, const std::string& replica) {
  std::size_t count = 0;
  world.server().for_each("leases", [&](const Json& lease) {
    const bool is_shard = string_at(at(lease, "metadata"), "name").starts_with("holdfast-shard-");
    const std::string holder = string_at(at(lease, "spec"), "holderIdentity");
    if (is_shard && holder.starts_with(replica + "-")) ++count;
  });
  return count;
}

// It comes back from a cut of 12 s to an API server that does not list pods for it: 18 s are T + R.
TEST(Simulation, AReplicaThatCannotListAKindGivesItsShardsUpAndTakesThemAgainWhenItCan) {
  int tried = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    RunRequest run = request(seed, "calm", 30);
    run.sabotage = [&tried](World& world) {
      using std::chrono::minutes;
      using std::chrono::seconds;
      const auto at = [&world](Duration when, auto what) {
        world.scheduler().at(minutes(10) + when, [&world, what] { what(world); });
      };
      // None: it is alone, or the plan gives it none.
      const auto shards = std::make_shared<std::size_t>(0);
      at(seconds(0), [shards](World& it) {
        if (shards_of(it, "holdfast-1") > 0) *shards = shards_of(it, "holdfast-0");
        if (*shards == 0) return;
        it.network().cut(0, Network::Cut::kRefused);
        it.network().break_watches(0);
      });
      at(seconds(12), [shards](World& it) {
        if (*shards == 0) return;
        it.network().cut(0, Network::Cut::kNone);
        it.network().refuses = [](const Delivery& delivery) {
          return delivery.replica == 0 &&
                 delivery.request.target.find("/pods?") != std::string::npos;
        };
      });
      for (const int second : {30, 60, 120, 180}) {
        at(seconds(second), [shards, &tried](World& it) {
          if (*shards == 0) return;
          ++tried;
          if (shards_of(it, "holdfast-0") > 0) it.ledger().complain("it keeps shards");
          complain_of_what_is_left(it);
        });
      }
      at(minutes(4), [](World& it) { it.network().refuses = nullptr; });
      at(minutes(5), [shards](World& it) {
        if (shards_of(it, "holdfast-0") < *shards) it.ledger().complain("it takes none again");
      });
    };
    EXPECT_EQ(run_seed(run).violation, "") << "seed " << seed;
  }
  EXPECT_GE(tried, 8);
}

struct Share {
  std::string profile;
  std::uint64_t seed;
};

std::vector<Share> share() {
  std::vector<Share> runs;
  for (const Profile& profile : profiles()) {
    if (profile.volume > 0) continue;  // takes minutes: by `make simulate`
    for (std::uint64_t seed = 1; seed <= kSeedsOfAProfile; ++seed) {
      runs.push_back({profile.name, seed});
    }
  }
  return runs;
}

class SimulationShare : public testing::TestWithParam<Share> {};

TEST_P(SimulationShare, KeepsEveryRuleAndBound) {
  const RunRequest run = request(GetParam().seed, GetParam().profile, 30);
  const RunResult result = run_seed(run);
  EXPECT_EQ(result.violation, "") << replay_command(run, run.selection);
  EXPECT_GT(result.checks, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, SimulationShare, testing::ValuesIn(share()),
                         [](const auto& share_info) {
                           return share_info.param.profile + "_" +
                                  std::to_string(share_info.param.seed);
                         });

// A line: profile, seed, minutes, selection, and what it was.
TEST(Simulation, SeedsThatOnceFailedPass) {
  std::ifstream file(SIMULATION_SEEDS);
  ASSERT_TRUE(file.is_open());
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string profile, selection, what;
    std::uint64_t seed = 0;
    int minutes = 0;
    words >> profile >> seed >> minutes >> selection;
    std::getline(words, what);
    ASSERT_NE(find_profile(profile), nullptr) << line;
    RunRequest run = request(seed, profile, minutes);
    ASSERT_TRUE(Selection::parse(selection)) << line;
    run.selection = *Selection::parse(selection);
    EXPECT_EQ(run_seed(run).violation, "") << "again:" << what;
  }
}

}  // namespace
}  // namespace holdfast::simulation
