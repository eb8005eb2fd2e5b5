// Any history of answers, pauses, progress and ends, by seeds: what must hold in all of them.
#include <optional>

#include "tests/unit/agent/guard_fixture.h"

namespace holdfast::agent::testing {
namespace {

using Kind = LeaseRefusal::Kind;
using Stop = Orders::Stop;

constexpr int kSeeds = 3000;
constexpr int kSteps = 200;

// Obeys a Guard and checks each order against what was acknowledged before. The child dies of
// SIGKILL, and of nothing else unless the history says so; in every eighth history it is another
// user's and does not die of that either: then the agent's own end must end it.
class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed),
        duration_(seconds(1 + static_cast<int>(random_.below(90)))),
        out_of_reach_(random_.below(8) == 0),
        guard_(settings(), random_) {}

  void run() {
    obey(guard_.begin(now_));
    for (int i = 0; i < kSteps && !over_ && !::testing::Test::HasFailure(); ++i) step();
  }
  bool started() const { return starts_ > 0; }
  bool fenced() const { return fenced_; }
  bool ended() const { return over_ && !fenced_; }

 private:
  GuardSettings settings() {
    GuardSettings settings{.duration = duration_,
                           .progress_deadline = std::nullopt,
                           .attempt = kAttempt,
                           .holder = kHolder};
    if (random_.below(2) == 0) {
      settings.progress_deadline = duration_ + seconds(static_cast<int>(random_.below(60)));
    }
    return settings;
  }

  void step() {
    pass_time();
    const std::uint64_t what = random_.below(100);
    if (what < 40 && request_) return receive();
    if (what < 45 && alive_) return obey(guard_.progressed(now_, "on"));
    if (what < 46 && alive_) {
      child_gone_ = true;
      return obey(guard_.child_ended(now_, 4));
    }
    if (what < 60 && killed_ && !out_of_reach_ && random_.below(3) > 0) {
      alive_ = false;
      if (!child_gone_) {
        child_gone_ = true;
        obey(guard_.child_ended(now_, 137));
      }
      if (!over_) obey(guard_.all_dead(now_));
      return;
    }
    if (what == 60 && !over_) {
      asked_ = true;
      return obey(guard_.asked_to_end(now_));
    }
    obey(guard_.woke(now_));
  }

  // Mostly to when it wants to be woken or less far, sometimes a pause of any length.
  void pass_time() {
    const std::uint64_t how = random_.below(100);
    if (how < 50) return;
    const auto part = [&](Duration most) {
      return Duration(
          static_cast<Duration::rep>(random_.below(static_cast<std::uint64_t>(most.count()) + 1)));
    };
    if (how < 97) {
      const Duration wanted = wake_at_ - now_;
      ASSERT_GT(wanted, Duration(0)) << "it would spin";
      now_ += how < 80 ? wanted : part(wanted);
    } else {
      now_ += part(duration_ * 3);
    }
  }

  void receive() {
    const bool put = *std::exchange(request_, std::nullopt);
    const std::uint64_t what = random_.below(100);
    if (what < 70) {
      if (put) acknowledged_ = sent_;
      obey(guard_.answered(now_, lease()));
    } else if (what < 80) {
      obey(guard_.answered(now_, answer(Kind::kConflict)));
    } else if (what < 95) {
      LeaseRefusal none = answer(Kind::kNone);
      if (random_.below(2) == 0) none.retry_after = seconds(random_.below(100));
      obey(guard_.answered(now_, none));
    } else {
      const std::vector<LeaseReading> verdicts = {answer(Kind::kGone), answer(Kind::kFenced),
                                                  lease(kAttempt + 1, ""), lease(kAttempt, "x/y"),
                                                  lease(kAttempt, kHolder, "lease-2")};
      // The last is none before a renewal: any Lease that names the pod is the right one then.
      const std::size_t count = started() ? verdicts.size() : verdicts.size() - 1;
      const std::size_t which = random_.below(count);
      // Whoever finds no Lease waits as long as after a renewal.
      if (which == 0 && asked_ && started()) acknowledged_ = sent_;
      obey(guard_.answered(now_, verdicts[which]));
    }
  }

  void obey(const Orders& orders) {
    if (orders.abort_request) request_.reset();
    if (orders.stop != Stop::kNone) {
      EXPECT_TRUE(started()) << "there is nothing to stop";
      stopping_ = true;
      if (orders.stop == Stop::kKill && !killed_) killed_ = now_;
    }
    if (orders.start_before) check_start(*orders.start_before);
    if (orders.put || orders.get) {
      EXPECT_FALSE(request_) << "two requests at a time";
      EXPECT_FALSE(stopping_ && !child_gone_) << "a renewal after fencing has begun";
      request_ = orders.put.has_value();
      sent_ = now_;
    }
    if (orders.exit_code) {
      if (alive_) {
        ASSERT_TRUE(killed_) << "it ends before its child";
        EXPECT_GE(now_ - *killed_, milliseconds(100)) << "it gives up at once";
      }
      alive_ = false;
      over_ = true;
      fenced_ = *orders.exit_code == kFencedExitCode;
    }
    wake_at_ = orders.wake_at;
    check_running();
  }

  void check_start(SteadyTime before) {
    EXPECT_EQ(++starts_, 1) << "a second child";
    EXPECT_FALSE(stopping_);
    ASSERT_TRUE(acknowledged_) << "without a renewal";
    EXPECT_LE(before - *acknowledged_, duration_ * 2 / 3);
    EXPECT_LT(now_ - *acknowledged_, duration_ * 2 / 3);
    alive_ = true;
  }

  // It has just had its say at this moment, so nothing excuses it.
  void check_running() {
    if (!alive_ || over_) return;
    ASSERT_TRUE(acknowledged_);
    if (killed_) {
      // It wakes in time to end before the Lease does, if it was in time for the kill.
      const Duration late = std::max(*killed_ - *guard_.renewed(), duration_ * 49 / 60);
      EXPECT_LE(wake_at_ - *guard_.renewed(),
                late + std::max<Duration>(duration_ / 120, milliseconds(200)));
      return;
    }
    EXPECT_LT(now_ - *guard_.renewed(), duration_ * 5 / 6);
    EXPECT_LE(*guard_.renewed(), *acknowledged_);
    EXPECT_TRUE(stopping_ || now_ - *guard_.renewed() < duration_ * 2 / 3);
    // It wakes in time for the next deadline.
    EXPECT_LE(wake_at_ - *guard_.renewed(), duration_ * (stopping_ ? 49 : 40) / 60);
    EXPECT_TRUE(!stopping_ || guard_.phase() == Guard::Phase::kFencing) << "it turned back";
  }

  SeededRandom random_;
  Duration duration_;
  bool out_of_reach_;
  Guard guard_;
  SteadyTime now_{seconds(5000)};
  SteadyTime wake_at_{};
  std::optional<bool> request_;  // under way: is it a PUT
  SteadyTime sent_{};
  std::optional<SteadyTime> acknowledged_;
  int starts_ = 0;
  bool alive_ = false, stopping_ = false, child_gone_ = false, asked_ = false;
  std::optional<SteadyTime> killed_;
  bool over_ = false, fenced_ = false;
};

TEST(GuardHistories, NoneRunsPastItsLeaseTurnsBackOrStartsWithoutARenewal) {
  int started = 0, fenced = 0, ended = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed);
    history.run();
    if (HasFailure()) return;
    started += history.started() ? 1 : 0;
    fenced += history.fenced() ? 1 : 0;
    ended += history.ended() ? 1 : 0;
  }
  // They reach what is to be checked.
  EXPECT_GT(started, kSeeds / 2);
  EXPECT_GT(fenced, kSeeds / 5);
  EXPECT_GT(ended, kSeeds / 20);
}

}  // namespace
}  // namespace holdfast::agent::testing
