// Silence that outlives the process that saw it: what one observer hands to another counts once,
// and only for the same version.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "reconciler/staleness.h"
#include "tests/unit/reconciler/rng.h"

namespace holdfast::reconciler::testing {
namespace {

using std::chrono::seconds;

constexpr LiveTime live(int now, int epoch = 0) { return {seconds(now), seconds(epoch)}; }

TEST(Carried, AnEarlierLifesSilenceComesOnTop) {
  RecordTracker tracker;
  tracker.seen("a", 7, seconds(0));
  tracker.carry("a", 7, seconds(30), live(2));
  EXPECT_EQ(tracker.silent_for("a", seconds(2), seconds(0)), seconds(30));
  EXPECT_EQ(tracker.silent_for("a", seconds(12), seconds(0)), seconds(40));
}

TEST(Carried, ItMayComeBeforeTheRecordIsSeen) {
  RecordTracker tracker;
  tracker.carry("a", 7, seconds(30), live(0));
  EXPECT_FALSE(tracker.silent_for("a", seconds(1), seconds(0)));
  EXPECT_EQ(tracker.version("a"), 7u);
  tracker.seen("a", 7, seconds(9));
  EXPECT_EQ(tracker.silent_for("a", seconds(10), seconds(0)), seconds(31));
}

TEST(Carried, ItCountsOnUntilTheRecordIsSeenIfTheVersionProvesIt) {
  RecordTracker tracker;
  tracker.carry("a", 7, seconds(30), live(0), /*counts_on=*/true);
  tracker.seen("a", 7, seconds(9));
  EXPECT_EQ(tracker.silent_for("a", seconds(10), seconds(0)), seconds(40));
  EXPECT_EQ(tracker.silent_for("a", seconds(10), seconds(5)), seconds(1)) << "a gap";
}

TEST(Carried, TheLongestSilenceWaits) {
  RecordTracker tracker;
  tracker.carry("a", 7, seconds(300), live(0));
  tracker.carry("a", 7, seconds(60), live(1));
  tracker.seen("a", 7, seconds(2));
  EXPECT_EQ(tracker.silent_for("a", seconds(2), seconds(0)), seconds(300));
  tracker.carry("b", 7, seconds(300), live(0));
  tracker.carry("b", 8, seconds(60), live(1));
  tracker.carry("b", 8, seconds(50), live(1));
  tracker.seen("b", 8, seconds(2));
  EXPECT_EQ(tracker.silent_for("b", seconds(2), seconds(0)), seconds(60)) << "a sign of life";
  tracker.carry("c", 7, seconds(300), live(0));
  tracker.carry("c", 7, seconds(60), live(6, 5));
  tracker.seen("c", 7, seconds(7));
  EXPECT_EQ(tracker.silent_for("c", seconds(7), seconds(5)), seconds(60)) << "a gap before";
}

TEST(Carried, AnotherVersionIsASignOfLife) {
  RecordTracker tracker;
  tracker.carry("a", 7, seconds(30), live(0));
  tracker.seen("a", 8, seconds(1));
  EXPECT_EQ(tracker.silent_for("a", seconds(2), seconds(0)), seconds(1)) << "renewed between lives";
  tracker.carry("a", 7, seconds(90), live(3));
  EXPECT_EQ(tracker.silent_for("a", seconds(3), seconds(0)), seconds(2)) << "an old record";
  tracker.carry("a", 8, seconds(20), live(3));
  tracker.seen("a", 9, seconds(4));
  EXPECT_EQ(tracker.silent_for("a", seconds(5), seconds(0)), seconds(1)) << "renewed since";
}

TEST(Carried, TwoWhoWatchSideBySideNeverAddUp) {
  RecordTracker ours;
  ours.seen("a", 7, seconds(0));
  for (int second = 10; second <= 60; second += 10) {
    ours.carry("a", 7, seconds(second), live(second));
  }
  EXPECT_EQ(ours.silent_for("a", seconds(60), seconds(0)), seconds(60));
}

TEST(Carried, AGapEndsIt) {
  RecordTracker tracker;
  tracker.seen("a", 7, seconds(0));
  tracker.carry("a", 7, seconds(30), live(2));
  EXPECT_EQ(tracker.silent_for("a", seconds(12), seconds(10)), seconds(2));
  tracker.carry("a", 7, seconds(35), live(12, 10));
  EXPECT_EQ(tracker.silent_for("a", seconds(12), seconds(10)), seconds(35)) << "seen by another";
}

TEST(Carried, BeforeItCountsThisLifeHasSeenTheFirstLookItself) {
  RecordTracker tracker;
  tracker.carry("a", 7, seconds(100), live(0));
  tracker.seen("a", 7, seconds(0));
  const auto left = [&](int now, int window) {
    return seconds(window) - *tracker.counted("a", seconds(window), kFirstLook, live(now));
  };
  EXPECT_EQ(left(1, 40), seconds(14));
  EXPECT_EQ(left(14, 40), seconds(1));
  EXPECT_LE(left(15, 40), seconds(0));
  EXPECT_EQ(left(1, 10), seconds(9)) << "a window that is shorter than the first look";
  EXPECT_EQ(left(1, 300), seconds(199)) << "one that is far from its end";
}

TEST(Carried, AMassOutageIsOneForTheNextLifeToo) {
  const auto held_back = [](Duration silent) {
    RecordTracker tracker;
    for (const char* const name : {"a", "b", "c", "d"}) {
      tracker.carry(name, 7, silent, live(0));
      tracker.seen(name, 7, seconds(0));
    }
    return tracker.held_back(
        "a", seconds(40), [](const std::string&) { return live(16); }, SteadyTime(seconds(1000)));
  };
  EXPECT_TRUE(held_back(seconds(25)));
  EXPECT_FALSE(held_back(seconds(65))) << "one window more, not two";
}

// One node in truth, three observers whose lives and watches come and go, and a record that any of
// them writes now and then. Time goes by the second.
class Observers {
 public:
  explicit Observers(std::uint64_t seed) : rng_(seed), observers_(3) {}

  void second() {
    ++now_;
    if (rng_.percent(silent_ ? 1 : 15)) renew();
    if (rng_.percent(3)) silent_ = !silent_;
    if (rng_.percent(2)) outage_ = !outage_;
    for (Observer& observer : observers_) live(observer);
    any_watched_ += std::any_of(observers_.begin(), observers_.end(),
                                [](const Observer& observer) { return observer.counts; });
    for (Observer& observer : observers_) exchange(observer);
  }

 private:
  struct Observer {
    std::unique_ptr<RecordTracker> tracker;  // null: dead
    LiveClock clock;
    int version = 0;  // what it knows
    Duration read{0};
    bool counts = false;  // in this second its watch was live
    bool open = true;
  };

  void renew() {
    if (outage_) return;
    ++version_;
    any_watched_ = 0;
  }

  void live(Observer& observer) {
    observer.counts = false;
    if (!observer.tracker) {
      if (!rng_.percent(20)) return;
      observer = Observer();
      observer.tracker = std::make_unique<RecordTracker>();
    } else if (rng_.percent(4)) {
      observer.tracker.reset();
      return;
    }
    if (rng_.percent(3)) observer.open = !observer.open;
    observer.clock.watch(observer.open && !outage_, at());
    if (!outage_) observer.clock.proof(at());
    const LiveTime time = read(observer);
    observer.counts = time.now > std::exchange(observer.read, time.now);
    if (!observer.open || outage_) return;
    observer.tracker->seen("node", static_cast<std::uint64_t>(version_), time.now);
    observer.version = version_;
  }

  void exchange(Observer& observer) {
    if (!observer.tracker || !observer.open || outage_) return;
    const LiveTime time = read(observer);
    if (record_version_ > 0 && rng_.percent(50)) {
      observer.tracker->carry("node", static_cast<std::uint64_t>(record_version_), recorded_, time);
    }
    const auto silent = observer.tracker->silent_for("node", time.now, time.epoch);
    ASSERT_TRUE(silent);
    ASSERT_LE(*silent, seconds(any_watched_)) << "more than was watched since the last renewal";
    const auto counted = observer.tracker->counted("node", seconds(40), kFirstLook, time);
    ASSERT_LE(*counted, *silent);
    if (*counted >= seconds(40)) {
      ASSERT_GE(time.now - time.epoch, kFirstLook) << "judged before it had looked itself";
    }
    if (rng_.percent(20)) {
      record_version_ = observer.version;
      recorded_ = std::chrono::floor<seconds>(*silent);
    }
  }

  LiveTime read(Observer& observer) const {
    const Duration now = observer.clock.read(at());
    return {now, observer.clock.epoch()};
  }
  SteadyTime at() const { return SteadyTime(seconds(1000 + now_)); }

  Rng rng_;
  std::vector<Observer> observers_;
  int now_ = 0;
  int version_ = 1;
  bool silent_ = false;
  bool outage_ = false;
  int any_watched_ = 0;  // seconds since the last renewal in which somebody watched
  int record_version_ = 0;
  Duration recorded_{0};
};

TEST(Carried, NobodyEverCountsMoreThanWasWatchedSinceTheLastSignOfLife) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Observers observers(seed);
    for (int second = 0; second < 300; ++second) {
      observers.second();
      if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", second " << second;
    }
  }
}

// A life that ends before any window does leaves its seconds to the next.
TEST(Carried, LivesThatAreShorterThanTheWindowAddUpOverIt) {
  Duration recorded{0};
  int lives = 0;
  for (bool over = false; !over; ++lives) {
    ASSERT_LT(lives, 4);
    RecordTracker tracker;
    tracker.carry("a", 7, recorded, live(0));
    tracker.seen("a", 7, seconds(0));
    for (int second = 1; second <= 25; ++second) {
      over = over || *tracker.counted("a", seconds(40), kFirstLook, live(second)) >= seconds(40);
      if (second == 18) recorded = *tracker.silent_for("a", seconds(second), seconds(0));
    }
  }
  EXPECT_EQ(lives, 2);
}

// Six of ten records fall silent, and 5 s later an observer starts that knows of none of them.
TEST(InDoubt, AnObserverThatStartsDuringAMassSilenceIsInDoubtToo) {
  RecordTracker tracker;
  const auto name = [](int i) { return std::string(1, static_cast<char>('a' + i)); };
  const auto clock = [&](const std::string&) { return live(60); };
  for (int i = 0; i < 10; ++i) tracker.seen(name(i), 1, seconds(0));
  for (int i = 6; i < 10; ++i) tracker.seen(name(i), 2, seconds(55));
  const SteadyTime now{};
  EXPECT_FALSE(tracker.breaker("a", seconds(60), clock)) << "it saw only four alive";
  EXPECT_TRUE(tracker.in_doubt("a", seconds(60), clock, now));
}

// Each replica keeps the silences of its own shards' nodes for the others.
TEST(InDoubt, AnObserverThatTakesHalfOfTheSilencesOverIsInDoubtToo) {
  RecordTracker tracker;
  const auto name = [](int i) { return std::string(1, static_cast<char>('a' + i)); };
  for (int i = 0; i < 10; ++i) tracker.seen(name(i), 1, seconds(0));
  for (int i = 0; i < 5; ++i) tracker.carry(name(i), 1, seconds(110), live(0));
  for (int now = 15; now < 60; ++now) {
    const auto clock = [&](const std::string&) { return live(now); };
    ASSERT_GE(tracker.counted("a", seconds(60), kFirstLook, live(now)), seconds(60));
    EXPECT_TRUE(tracker.in_doubt("a", seconds(60), clock, SteadyTime(seconds(now)))) << now;
  }
}

TEST(InDoubt, NodesThatRenewEachTenSecondsAreNotSilentHoweverShortTheWindow) {
  RecordTracker tracker;
  for (const char* const name : {"a", "b", "c", "d"}) tracker.seen(name, 1, seconds(0));
  for (const char* const name : {"b", "c", "d"}) tracker.seen(name, 2, seconds(10));
  const auto clock = [](const std::string&) { return live(20); };
  EXPECT_FALSE(tracker.in_doubt("a", seconds(15), clock, SteadyTime{}));
}

TEST(InDoubt, ItLastsAsLongAsTheSilence) {
  RecordTracker tracker;
  for (const char* const name : {"a", "b", "c", "d"}) tracker.seen(name, 1, seconds(0));
  for (int now = 60; now < 100'000; now += 10'000) {
    const auto clock = [&](const std::string&) { return live(now); };
    EXPECT_TRUE(tracker.in_doubt("a", seconds(60), clock, SteadyTime(seconds(now)))) << now;
  }
}

TEST(InDoubt, RecordsThatWereSilentLongBeforeAreNoSign) {
  RecordTracker tracker;
  for (const char* const name : {"a", "b", "c", "d", "e"}) tracker.seen(name, 1, seconds(0));
  for (const char* const name : {"a", "e"}) tracker.seen(name, 2, seconds(61));
  const auto clock = [](const std::string&) { return live(121); };
  EXPECT_FALSE(tracker.in_doubt("a", seconds(60), clock, SteadyTime{}));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
