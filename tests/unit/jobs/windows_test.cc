// What a shard's Lease keeps of silent subjects: text that people may have edited, whose silence is
// worth it, and what pods and jobs stand in.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "operator/jobs/job_windows.h"
#include "operator/observe/window_codec.h"
#include "operator/observe/window_keeper.h"
#include "tests/support/manual_loop.h"

namespace holdfast::jobs {
namespace {

using reconciler::LiveTime;
using reconciler::RecordTracker;
using std::chrono::seconds;

TEST(WindowCodec, WhatIsWrittenIsReadInWholeSeconds) {
  const std::string text = observe::encode_windows(
      {{"node/a", 12, std::chrono::milliseconds(33'900)}, {"holder/media/b", ~0ull, seconds(21)}});
  EXPECT_EQ(text, R"({"holder/media/b":["18446744073709551615",21],"node/a":["12",33]})");
  const auto read = observe::decode_windows(text);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].mark, ~0ull);
  EXPECT_EQ(read[1].subject, "node/a");
  EXPECT_EQ(read[1].silent, seconds(33)) << "never more than was seen";
  EXPECT_EQ(observe::encode_windows({}), "");
}

TEST(WindowCodec, WhatSomebodyElseWroteThereIsLeftOut) {
  for (const char* const text :
       {"", "[]", "{", "7", R"({"node/a":33})", R"({"node/a":["12"]})", R"({"node/a":["x",33]})",
        R"({"node/a":["12",-1]})", R"({"node/a":["12",1e300]})", R"({"node/a":[12,33]})",
        R"({"node/a":["12",99999999999999]})"}) {
    EXPECT_TRUE(observe::decode_windows(text).empty()) << text;
  }
  EXPECT_EQ(observe::decode_windows(R"({"node/a":null,"node/b":["1",2]})").size(), 1u);
}

TEST(WindowCodec, OfTooManyTheLeastSilentAreLeftOutAndItFitsAnnotations) {
  std::vector<observe::SilentSubject> subjects;
  for (int i = 0; i < 3000; ++i) {
    subjects.push_back({"node/" + std::string(240, 'n') + std::to_string(i), ~0ull, seconds(i)});
  }
  const std::string text = observe::encode_windows(subjects);
  EXPECT_LT(text.size(), 128u * 1024);
  const auto read = observe::decode_windows(text);
  ASSERT_EQ(read.size(), observe::kMostSubjects);
  for (const observe::SilentSubject& subject : read) {
    EXPECT_GE(subject.silent, seconds(3000 - static_cast<int>(observe::kMostSubjects)));
  }
}

TEST(WindowCodec, ANamespaceWithManyLeavesRoomForOthers) {
  std::vector<observe::SilentSubject> subjects = {{"node/worker-1", 1, seconds(16)},
                                                  {"holder/b/holdfast-1", 1, seconds(15)}};
  for (int i = 0; i < 3000; ++i) {
    subjects.push_back({"still/a/pod-" + std::to_string(i), 1, seconds(600)});
  }
  std::set<std::string> kept;
  for (const observe::SilentSubject& subject :
       observe::decode_windows(observe::encode_windows(subjects))) {
    kept.insert(subject.subject);
  }
  EXPECT_EQ(kept.size(), observe::kMostSubjects);
  EXPECT_EQ(kept.count("node/worker-1"), 1u);
  EXPECT_EQ(kept.count("holder/b/holdfast-1"), 1u);
}

class WindowKeeperTest : public testing::Test {
 protected:
  WindowKeeperTest() {
    const auto clock = [this](const std::string&) { return LiveTime{now_, seconds(0)}; };
    windows_.add("node", {tracker_, clock, [this](const std::string& name, Duration) {
                            return observe::WindowKeeper::Wanted{wanted_[name], seconds(80)};
                          }});
  }
  std::string record(int shard) {
    loop_.advance(seconds(1));
    return windows_.record(shard);
  }

  test::ManualLoop loop_;
  observe::WindowKeeper windows_{loop_, Log()};
  RecordTracker tracker_;
  std::map<std::string, std::vector<int>> wanted_;
  Duration now_{0};
};

TEST_F(WindowKeeperTest, ASilenceIsOnRecordOfTheShardsThatWaitForItFrom15SecondsOn) {
  tracker_.seen("a", 7, seconds(0));
  tracker_.seen("b", 8, seconds(0));
  wanted_["a"] = {1, 3};
  now_ = seconds(14);
  EXPECT_EQ(record(1), "");
  now_ = seconds(15);
  EXPECT_EQ(record(1), R"({"node/a":["7",15]})");
  EXPECT_EQ(record(3), record(1));
  EXPECT_EQ(record(2), "");
  tracker_.seen("a", 9, seconds(15));
  EXPECT_EQ(record(1), "") << "it lives";
}

// What decides nothing any more is not written again and again.
TEST_F(WindowKeeperTest, NoMoreIsRecordedThanAnybodyWaitsFor) {
  tracker_.seen("a", 7, seconds(0));
  wanted_["a"] = {1};
  now_ = seconds(80);
  const std::string text = record(1);
  now_ = seconds(8000);
  EXPECT_EQ(record(1), text);
}

TEST_F(WindowKeeperTest, TheNextLifeGoesOnFromTheRecord) {
  windows_.carry(R"({"node/a":["7",30],"other/a":["7",30],"node":["7",1],"node/b":["5",30]})");
  tracker_.seen("a", 7, seconds(0));
  tracker_.seen("b", 6, seconds(0));
  now_ = seconds(5);
  wanted_["a"] = wanted_["b"] = {1};
  EXPECT_EQ(record(1), R"({"node/a":["7",35]})");
}

class JobWindowsTest : public testing::Test {
 protected:
  static codecs::CachedPod pod(int started, const std::string& uid = "pod-uid") {
    codecs::CachedPod pod;
    pod.namespace_ = "media";
    pod.name = pod.pod.name = "a-1-abcde";
    pod.uid = pod.pod.uid = uid;
    pod.pod.phase = reconciler::PodPhase::kPending;
    for (int i = 0; i < 3; ++i) {
      reconciler::ContainerView container;
      container.init = i < 2;
      container.started = i < started;
      if (container.started) container.terminated = reconciler::Terminated{};
      pod.pod.containers.push_back(container);
    }
    return pod;
  }
  Duration still(const codecs::CachedPod& seen, int now) {
    return windows_.still_for("media", seen.pod, {seconds(now), seconds(0)});
  }
  void see(const codecs::CachedPod& seen, int now) {
    windows_.see(seen, {seconds(now), seconds(0)});
  }

  JobWindows windows_;
};

TEST_F(JobWindowsTest, APodStandsStillSinceItsLastStep) {
  see(pod(1), 10);
  EXPECT_EQ(still(pod(1), 30), seconds(20));
  EXPECT_EQ(still(pod(2), 30), seconds(0)) << "read live, not seen yet";
  see(pod(2), 40);
  EXPECT_EQ(still(pod(2), 45), seconds(5));
  see(pod(1), 50);
  EXPECT_EQ(still(pod(1), 55), seconds(15)) << "what a kubelet forgets is no step";
  see(pod(1, "another"), 60);
  EXPECT_EQ(still(pod(1, "another"), 61), seconds(1));
  see(pod(3, "another"), 62);
  EXPECT_EQ(still(pod(3, "another"), 70), seconds(0)) << "nothing is left to start";
}

TEST_F(JobWindowsTest, APodThatRanStandsStillFromWhenItsKubeletTakesThatBack) {
  codecs::CachedPod runs = pod(3);
  runs.pod.node_name = "node-a";
  runs.pod.phase = reconciler::PodPhase::kRunning;
  runs.pod.containers[2].terminated.reset();
  see(runs, 10);
  for (const bool with_containers : {true, false}) {
    codecs::CachedPod taken_back = pod(0);
    taken_back.pod.node_name = "node-a";
    if (!with_containers) taken_back.pod.containers.clear();
    see(taken_back, 3600);
    EXPECT_EQ(still(taken_back, 3602), seconds(2));
    see(runs, 3603);
    EXPECT_EQ(still(runs, 3700), seconds(0));
  }
}

TEST_F(JobWindowsTest, APodThatWasAskedToGoIsCountedFromWhenThatWasSeenAndAgainAfterAGap) {
  codecs::CachedPod going = pod(1);
  see(going, 10);
  going.pod.deletion = Time(seconds(1'800'000'000));
  see(going, 20);
  const auto going_for = [&](int now, int epoch) {
    return windows_.going_for("media", going.pod, seconds(40), {seconds(now), seconds(epoch)});
  };
  EXPECT_EQ(going_for(50, 0), seconds(30));
  EXPECT_EQ(going_for(50, 45), seconds(5));
  windows_.gone(going);
  EXPECT_EQ(going_for(50, 0), seconds(0));
}

TEST_F(JobWindowsTest, TheyGoOnInTheNextLife) {
  test::ManualLoop loop;
  codecs::CachedPod going = pod(1);
  going.pod.deletion = Time(seconds(1'800'000'000));
  codecs::CachedJob job;
  job.namespace_ = "media";
  job.name = "a";
  job.uid = "job-uid";
  job.job.status.phase = reconciler::Phase::kCancelling;
  Duration now{0};
  const auto clock = [&](const std::string&) { return LiveTime{now, seconds(0)}; };
  const auto wanted = [](const std::string&, Duration) {
    return observe::WindowKeeper::Wanted{{0}, seconds(600)};
  };
  const auto life = [&](JobWindows& windows, observe::WindowKeeper& keeper) {
    windows.keep_windows(keeper, clock, {wanted, wanted, wanted});
  };
  observe::WindowKeeper first_keeper(loop, Log()), second_keeper(loop, Log());
  JobWindows second;
  life(windows_, first_keeper);
  life(second, second_keeper);
  windows_.see(going, {now, seconds(0)});
  windows_.see(job, {now, seconds(0)});
  now = seconds(20);
  loop.advance(seconds(20));
  const std::string record = first_keeper.record(0);
  now = seconds(0);
  second_keeper.carry(record);
  second.see(going, {now, seconds(0)});
  second.see(job, {now, seconds(0)});
  now = seconds(15);
  const LiveTime time{now, seconds(0)};
  EXPECT_EQ(second.still_for("media", going.pod, time), seconds(35));
  EXPECT_EQ(second.going_for("media", going.pod, seconds(40), time), seconds(35));
  EXPECT_EQ(second.cancelling_for(job, seconds(40), time), seconds(35));
}

}  // namespace
}  // namespace holdfast::jobs
