// The controller of batch/v1 Jobs when its caches are behind, and when its process dies.
#include <set>
#include <utility>

#include "tests/unit/lane/lane_fixture.h"

namespace holdfast::lane_controller::testing {
namespace {

using ::testing::IsEmpty;

// More than the story below has.
constexpr int kMostWrites = 20;

TEST_F(LaneControllerTest, AWatchThatShowsNoDurableJobMakesNoSecondOne) {
  start();
  world_.stuck_watch = "/durablejobs?";
  int posts = 0;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool creates = request.target.find("/durablejobs") != std::string::npos;
    posts += request.method == "POST" && creates ? 1 : 0;
    return std::nullopt;
  };
  world_.create(kBatchJobs, batch_job());
  world_.run(seconds(3));
  EXPECT_EQ(posts, 1);
  world_.stop();  // another process sees it
  world_.stuck_watch.clear();
  start();
  EXPECT_TRUE(until([&] { return !world_.all("pods").empty(); }));
  EXPECT_EQ(posts, 1);
}

TEST_F(LaneControllerTest, ADeletionOfTheDurableJobThatNoWatchShowsIsSeenByALook) {
  begin();
  world_.stop();
  world_.remove(path(kJobs, "pi"), {{"propagationPolicy", "Background"}});
  world_.collect_garbage();
  start();
  EXPECT_TRUE(until(
      [&] {
        stop_pods();
        return holds("Failed") == "DurableJobDeleted";
      },
      minutes(2)));
}

// The watch shows neither that the Job has gone nor the new one, which is suspended.
TEST_F(LaneControllerTest, AJobThatOnlyACacheKnowsMakesNothing) {
  answer("POST", "/durablejobs", refusal(503, "ServiceUnavailable"));
  world_.create(kBatchJobs, batch_job());
  start();
  ASSERT_GT(answered_, 0);
  world_.stuck_watch = "/apis/batch/v1/";
  delete_job();
  world_.create(kBatchJobs, batch_job({{"suspend", true}}));
  world_.before = nullptr;
  world_.run(minutes(2));
  EXPECT_THAT(world_.all("durablejobs"), IsEmpty());
}

// ---- A restart between any two writes.

class LaneRestarts : public LaneControllerTest, public ::testing::WithParamInterface<int> {
 protected:
  // The process dies before its n-th write for the Job, and another one follows.
  void die_before(int n) {
    world_.before = [this, n](const ApiRequest& request) -> std::optional<ApiAnswer> {
      const bool of_job = request.target.find("/jobs/pi/status") != std::string::npos;
      const bool of_durable = request.target.find("/durablejobs") != std::string::npos &&
                              request.target.find("/status") == std::string::npos;
      const bool writes = request.method != "GET" && (of_job || of_durable);
      if (writes && ++writes_ == n) is_dead_ = true;
      return is_dead_ ? std::optional(refusal(503, "ServiceUnavailable")) : std::nullopt;
    };
  }
  bool reaches(const std::function<bool()>& done) {
    const auto look = [&] {
      for (const Json& one : world_.all("durablejobs")) made_.insert(uid_of(one));
      stop_pods();
      return done();
    };
    if (!until([&] { return is_dead_ || look(); }, minutes(2))) return false;
    if (!std::exchange(is_dead_, false)) return true;
    world_.start();
    return until(look, minutes(2));
  }

  std::set<std::string> made_;  // UIDs of DurableJobs
  int writes_ = 0;
  bool is_dead_ = false;
};

TEST_P(LaneRestarts, AnyWriteMayBeTheLastOfAProcess) {
  start();
  die_before(GetParam());
  world_.create(kBatchJobs, batch_job());
  ASSERT_TRUE(reaches([&] { return !world_.all("pods").empty(); }));
  run_pod();
  ASSERT_TRUE(reaches([&] { return int_at(status(), "active") == 1; }));
  world_.patch(path(kBatchJobs, "pi"), {{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(reaches([&] { return !holds("Suspended").empty(); }));
  world_.patch(path(kBatchJobs, "pi"), {{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(reaches([&] { return !world_.all("pods").empty(); }));
  run_pod();
  ASSERT_TRUE(reaches([&] { return int_at(status(), "active") == 1; }));
  end_pod(true);
  ASSERT_TRUE(reaches([&] { return !holds("Complete").empty(); }));
  EXPECT_EQ(made_.size(), 1u);
  const bool is_last = GetParam() == kMostWrites;
  EXPECT_FALSE(is_last && writes_ >= kMostWrites) << "some were not tried: " << writes_;
}

INSTANTIATE_TEST_SUITE_P(Lane, LaneRestarts, ::testing::Range(1, kMostWrites + 1));

}  // namespace
}  // namespace holdfast::lane_controller::testing
