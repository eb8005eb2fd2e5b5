// Retries, pauses and lines of the notifier, in virtual time.
#include "operator/notify/notifier.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/manual_loop.h"

namespace holdfast::notify {
namespace {

using reconciler::DeliveryView;
using reconciler::NotifyEvent;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct Posted {
  std::string target;
  Message message;
  Poster::Done done;
  SteadyTime at;
};

class FakePoster : public Poster {
 public:
  explicit FakePoster(Loop& loop) : loop_(loop) {}
  void post(const Target& target, Message message, Done done) override {
    all.push_back({target.name, std::move(message), std::move(done), loop_.now()});
  }
  std::size_t of(const std::string& target) const {
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const Posted& one) { return one.target == target; }));
  }
  std::vector<Posted> all;

 private:
  Loop& loop_;
};

class Files : public FileReader {
 public:
  Result<std::string> read(const std::string&, std::size_t) const override {
    if (!secret) return make_error(ErrorCode::kNotFound, "/secret is missing");
    return *secret;
  }
  std::optional<std::string> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
};

class Counts : public jobs::Telemetry {
 public:
  void attempt_ended(const std::string&, const std::string&) override {}
  void stage_ended(const std::string&, std::optional<Duration>) override {}
  void recovered(const std::string&, reconciler::OrphanClass, Duration) override {}
  void fenced_outcome(const std::string&) override {}
  void admitted(const std::string&, const std::string&, Duration) override {}
  void shard_moved(const std::string&) override {}
  void notified(const std::string& target, const std::string& result) override {
    ++of[target + " " + result];
  }
  std::map<std::string, int> of;
};

class NotifierTest : public ::testing::Test {
 protected:
  NotifierTest() {
    clock_.observe(kBegin, loop_.now(), loop_.now());
    targets_ = *parse_targets(
        R"({"targets": [{"name": "chat", "url": "https://chat", "secretFile": "/s"},
                        {"name": "slow", "url": "https://slow", "secretFile": "/s"},
                        {"name": "other", "url": "https://o", "secretFile": "/s",
                         "namespaces": ["elsewhere"]}]})");
    notifier_.emplace(
        Notifier::Dependencies{
            loop_, random_, Log(), clock_, counts_, [this](const std::string&) { return holds_; },
            [this](const std::string& key) { looked_at_.push_back(key); }, poster_, files_},
        targets_);
  }

  codecs::CachedJob job(const std::string& name, std::vector<std::string> targets,
                        Duration age = Duration::zero(), const std::string& namespace_ = "media") {
    codecs::CachedJob job;
    job.namespace_ = job.job.namespace_ = namespace_;
    job.name = job.job.name = name;
    job.uid = job.job.uid = "uid-" + name;
    job.job.status.notifications = 1;
    reconciler::OutboxEntry entry;
    entry.number = 1;
    entry.event = NotifyEvent::kFailed;
    entry.time = clock_.now(loop_.now()) - age;
    entry.targets = std::move(targets);
    job.job.status.outbox = {entry};
    return job;
  }

  void deliver(const codecs::CachedJob& job) {
    notifier_->deliver(job);
    loop_.run_ready();
  }

  void answer(std::size_t number, int status, std::optional<Duration> pause = std::nullopt) {
    poster_.all[number].done(Answer{status, pause});
    loop_.run_ready();
  }

  static constexpr Time kBegin = Time(hours(500'000));
  test::ManualLoop loop_;
  SeededRandom random_{7};
  ServerClock clock_;
  Counts counts_;
  FakePoster poster_{loop_};
  Files files_;
  Targets targets_;
  bool holds_ = true;
  std::vector<std::string> looked_at_;
  std::optional<Notifier> notifier_;
};

TEST_F(NotifierTest, WhatATargetTakesIsShownToTheJob) {
  const auto one = job("a", {"chat"});
  deliver(one);
  deliver(one);  // each look at the job asks again
  ASSERT_EQ(poster_.all.size(), 1U);
  EXPECT_EQ(poster_.all[0].message.id, "uid-a/1");
  EXPECT_TRUE(notifier_->of(one).deliveries.empty());
  answer(0, 204);
  EXPECT_EQ(looked_at_, std::vector<std::string>{"media/a"});
  ASSERT_EQ(notifier_->of(one).deliveries.size(), 1U);
  EXPECT_EQ(notifier_->of(one).deliveries[0].result, DeliveryView::Result::kTaken);
  loop_.advance(hours(100));
  EXPECT_EQ(poster_.all.size(), 1U) << "it is sent once, however late it is recorded";
  EXPECT_EQ(counts_.of["chat delivered"], 1);
}

TEST_F(NotifierTest, TriesComeAfterFiveSecondsAtFirstAndSixHoursAtLast) {
  const auto one = job("a", {"chat"});
  deliver(one);
  std::vector<Duration> pauses;
  for (std::size_t number = 0; loop_.now() < SteadyTime(hours(1)) + hours(72); ++number) {
    answer(number, 500);
    ASSERT_TRUE(loop_.run_until([&] { return poster_.all.size() > number + 1; }, hours(7)));
    pauses.push_back(poster_.all[number + 1].at - poster_.all[number].at);
  }
  EXPECT_LE(pauses.front(), seconds(6));
  for (std::size_t at = 1; at < pauses.size(); ++at) {
    EXPECT_GE(pauses[at], seconds(5));
    EXPECT_LE(pauses[at], hours(6));
    EXPECT_LE(pauses[at], 3 * pauses[at - 1] + seconds(5)) << "no step is missed";
  }
  EXPECT_GE(pauses.back(), hours(4));
  EXPECT_LE(poster_.all.size(), 40U);
}

TEST_F(NotifierTest, ANewProcessGoesOnAboutWhereTheOldOneWas) {
  deliver(job("a", {"chat"}, hours(10)));
  ASSERT_EQ(poster_.all.size(), 1U) << "it tries at once";
  answer(0, 500);
  loop_.advance(hours(4));
  EXPECT_EQ(poster_.all.size(), 1U);
  loop_.advance(hours(2) + minutes(1));
  EXPECT_EQ(poster_.all.size(), 2U);
}

TEST_F(NotifierTest, ANamespaceWithManyEventsHoldsUpNoOther) {
  for (int number = 0; number < 50; ++number) {
    deliver(job("loud-" + std::to_string(number), {"chat"}, Duration::zero(), "loud"));
  }
  EXPECT_EQ(poster_.all.size(), static_cast<std::size_t>(kTriesOfNamespace));
  for (const char* const name : {"a", "b", "c"}) {
    deliver(job(name, {"chat"}, Duration::zero(), std::string("quiet-") + name));
  }
  ASSERT_EQ(poster_.all.size(), static_cast<std::size_t>(kTriesAtOnce));
  EXPECT_EQ(poster_.all[2].message.id, "uid-a/1");
  EXPECT_EQ(poster_.all[3].message.id, "uid-b/1");
  answer(0, 500);
  answer(1, 500);
  ASSERT_EQ(poster_.all.size(), 6U);
  EXPECT_EQ(poster_.all[5].message.id, "uid-c/1") << "its turn comes before 47 of the other";
  for (std::size_t number = 2; number < poster_.all.size(); ++number) answer(number, 204);
  EXPECT_EQ(poster_.all.size(), 53U) << "each has been tried once";
}

TEST_F(NotifierTest, ATargetThatHangsHoldsUpNoOther) {
  for (int number = 0; number < 20; ++number) {
    deliver(job("job-" + std::to_string(number), {"slow", "chat"}));
  }
  EXPECT_EQ(poster_.of("slow"), static_cast<std::size_t>(kTriesOfNamespace));
  for (std::size_t number = 0; number < poster_.all.size(); ++number) {
    if (poster_.all[number].target == "chat") answer(number, 204);
  }
  EXPECT_EQ(poster_.of("chat"), 20U);
  EXPECT_EQ(poster_.of("slow"), static_cast<std::size_t>(kTriesOfNamespace));
  EXPECT_EQ(looked_at_.size(), 20U);
}

TEST_F(NotifierTest, RetryAfterClosesTheWholeLine) {
  deliver(job("a", {"chat"}));
  answer(0, 429, minutes(3));
  deliver(job("b", {"chat", "slow"}));
  EXPECT_EQ(poster_.of("slow"), 1U);
  loop_.advance(minutes(3) - seconds(1));
  EXPECT_EQ(poster_.of("chat"), 1U);
  loop_.advance(seconds(2));
  EXPECT_EQ(poster_.of("chat"), 3U);
}

TEST_F(NotifierTest, APauseIsSixHoursAtMost) {
  deliver(job("a", {"chat"}));
  answer(0, 503, hours(200));
  loop_.advance(hours(6) + seconds(1));
  EXPECT_EQ(poster_.all.size(), 2U);
}

TEST_F(NotifierTest, GoneIsForGood) {
  const auto one = job("a", {"chat"});
  deliver(one);
  answer(0, 410);
  ASSERT_EQ(notifier_->of(one).deliveries.size(), 1U);
  EXPECT_EQ(notifier_->of(one).deliveries[0].result, DeliveryView::Result::kRefused);
  loop_.advance(hours(100));
  EXPECT_EQ(poster_.all.size(), 1U);
  EXPECT_EQ(counts_.of["chat refused"], 1);
}

TEST_F(NotifierTest, AfterThreeDaysEachFailureIsALookAtTheJob) {
  deliver(job("a", {"chat"}, hours(71)));
  answer(0, 500);
  EXPECT_TRUE(looked_at_.empty());
  loop_.advance(hours(7));
  answer(1, 500);
  EXPECT_EQ(looked_at_.size(), 1U);
}

TEST_F(NotifierTest, WhatIsNoLongerInTheOutboxIsNotSent) {
  auto one = job("a", {"chat"});
  deliver(one);
  answer(0, 500);
  one.job.status.outbox.clear();
  deliver(one);
  loop_.advance(hours(10));
  EXPECT_EQ(poster_.all.size(), 1U);
  EXPECT_EQ(notifier_->waiting().at("chat"), 0U);
}

TEST_F(NotifierTest, AnEventOfANewerVersionIsLeftToIt) {
  auto one = job("a", {"chat"});
  one.job.status.outbox[0].unknown = R"({"event": "Progressed"})";
  deliver(one);
  EXPECT_TRUE(poster_.all.empty());
  EXPECT_EQ(notifier_->waiting().at("chat"), 0U);
}

TEST_F(NotifierTest, AnotherJobOfTheSameNameIsAnotherJob) {
  deliver(job("a", {"chat"}));
  auto next = job("a", {"chat"});
  next.uid = next.job.uid = "uid-2";
  deliver(next);
  answer(0, 204);
  EXPECT_TRUE(notifier_->of(next).deliveries.empty());
  ASSERT_EQ(poster_.all.size(), 2U);
  EXPECT_EQ(poster_.all[1].message.id, "uid-2/1");
}

TEST_F(NotifierTest, AReplicaThatLostTheShardSendsNothing) {
  deliver(job("a", {"chat"}));
  answer(0, 500);
  holds_ = false;
  loop_.advance(hours(1));
  EXPECT_EQ(poster_.all.size(), 1U);
}

TEST_F(NotifierTest, AMissingSecretIsAFailureThatPasses) {
  files_.secret.reset();
  const auto one = job("a", {"chat"});
  deliver(one);
  EXPECT_TRUE(poster_.all.empty());
  ASSERT_EQ(notifier_->of(one).deliveries.size(), 1U);
  EXPECT_EQ(notifier_->of(one).deliveries[0].why,
            "its configuration is wrong: see the operator's log");
  files_.secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  loop_.advance(seconds(6));
  EXPECT_EQ(poster_.all.size(), 1U);
}

TEST_F(NotifierTest, AJobsOwnersReadNeitherHostNorAddress) {
  const auto one = job("a", {"chat"});
  deliver(one);
  const auto why = [&](ErrorCode code, const std::string& detail) {
    poster_.all.back().done(make_error(code, detail));
    loop_.run_ready();
    const std::string shown = notifier_->of(one).deliveries[0].why;
    loop_.advance(hours(7));
    return shown;
  };
  EXPECT_EQ(why(ErrorCode::kTransient, "connect to 10.1.2.3 failed"), "it gave no answer");
  EXPECT_EQ(why(ErrorCode::kForbidden, "its name hooks.internal leads to 10.1.2.3"),
            "its configuration is wrong: see the operator's log");
}

TEST_F(NotifierTest, UnknownAndForbiddenTargetsAreDistinguishedAndGetNothing) {
  const auto one = job("a", {"other", "nobody"});
  deliver(one);
  EXPECT_TRUE(poster_.all.empty());
  const auto view = notifier_->of(one);
  EXPECT_EQ(view.targets.at("other").state, reconciler::TargetView::State::kForbidden);
  EXPECT_EQ(view.targets.at("nobody").state, reconciler::TargetView::State::kUnknown);
}

TEST_F(NotifierTest, AnAnswerAfterTheEndIsIgnored) {
  deliver(job("a", {"chat"}));
  notifier_.reset();
  poster_.all[0].done(Answer{204, std::nullopt});
  EXPECT_TRUE(looked_at_.empty());
}

}  // namespace
}  // namespace holdfast::notify
