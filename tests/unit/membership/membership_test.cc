// What a replica does with shards that come, stay and go. Who gets which is shards_test.cc's, what
// becomes of jobs in a world of many replicas the simulation's.
#include "operator/membership/membership.h"

#include "core/json.h"
#include "tests/unit/kube/client_fixture.h"

namespace holdfast::membership {
namespace {

class MembershipTest : public kube::ClientTest {
 protected:
  MembershipTest() {
    transport_.date = Time(std::chrono::seconds(1'800'000'000));
    Membership::Handlers handlers;
    handlers.gained = [this](int) { reported_.emplace_back("gained"); };
    handlers.kept = [this](int) { reported_.emplace_back("kept"); };
    handlers.lost = [this](int, const char* why) { reported_.emplace_back(why); };
    handlers.refresh = [this](auto done) { reading_ = std::move(done); };
    handlers.unseen = [this](Duration patience) { return unseen_for_ >= patience ? unseen_ : ""; };
    handlers.proof = [] {};
    handlers.refuse = [](const Error&) {};
    handlers.wanted = [this](const std::set<int>& shards) { wanted_ = shards; };
    handlers.record = [this](int) { return is_read_ ? std::optional(record_) : std::nullopt; };
    handlers.recorded = [this](const std::string& text) { recorded_.push_back(text); };
    Membership::Config config;
    config.shards = 1;
    membership_ = std::make_unique<Membership>(
        Membership::Dependencies{loop_, client_, random_, Log()}, config, std::move(handlers));
    membership_->leases().start();
    loop_.run_ready();
    transport_.open_stream();
    send_event(
        "BOOKMARK",
        {{"metadata",
          {{"resourceVersion", "1"}, {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}});
    membership_->join();
    serve();
  }
  void TearDown() override {
    membership_->leases().stop();
    ClientTest::TearDown();
    in_hand_.reset();
    membership_.reset();
  }

  void send_event(const std::string& type, Json object) {
    object["apiVersion"] = "coordination.k8s.io/v1";
    object["kind"] = "Lease";
    transport_.stream_lines({Json({{"type", type}, {"object", std::move(object)}}).dump()});
    loop_.run_ready();
  }
  // Every write is applied, and shown by the watch.
  void serve() {
    loop_.run_ready();
    while (transport_.pending() > 0) {
      const bool is_of_shard =
          transport_.request().target.find("holdfast-shard") != std::string::npos;
      if (is_of_shard && !refusal_of_shards_.empty()) {
        transport_.answer(429, "{}", {{"Retry-After", refusal_of_shards_}});
        loop_.run_ready();
        continue;
      }
      if (transport_.request().method == "DELETE") {
        ++deletes_;
        transport_.answer(200, "{}");
        loop_.run_ready();
        continue;
      }
      const bool is_new = transport_.request().method == "POST";
      Json object = *parse_json(transport_.request().body);
      if (string_at(object["metadata"], "name") == "holdfast-shard-0") writes_.push_back(object);
      object["metadata"]["uid"] = "uid-of-" + string_at(object["metadata"], "name");
      object["metadata"]["resourceVersion"] = std::to_string(++version_);
      transport_.answer(is_new ? 201 : 200, object.dump());
      send_event(is_new ? "ADDED" : "MODIFIED", object);
    }
  }
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      loop_.advance(std::chrono::seconds(1));
      serve();
    }
  }
  static std::string windows_in(const Json& lease) {
    return string_at(at(at(lease, "metadata"), "annotations"), "holdfast.dev/windows");
  }
  // A member to whom the only shard falls as soon as it is there, or one to whom it does not.
  Json other_member(bool stronger) {
    std::string name;
    for (int i = 0; name.empty(); ++i) {
      const std::string other = "other-" + std::to_string(i);
      const std::string self = membership_->report().self;
      if ((reconciler::plan_shards(1, {self, other})[0] == other) == stronger) name = other;
    }
    LeaseWrite write;
    write.namespace_ = "holdfast-system";
    write.holder = name;
    write.shards = 1;
    write.duration = std::chrono::seconds(15);
    Json lease = *parse_json(member_lease_body(write, name));
    lease["metadata"]["uid"] = "uid-of-" + name;
    lease["metadata"]["resourceVersion"] = std::to_string(++version_);
    return lease;
  }

  std::unique_ptr<Membership> membership_;
  std::vector<std::string> reported_;
  // Nothing is answered for so long.
  void cut_off(Duration length) {
    for (Duration passed{0}; passed < length; passed += std::chrono::seconds(1)) {
      loop_.advance(std::chrono::seconds(1));
      while (transport_.pending() > 0) {
        transport_.lose();
        loop_.run_ready();
      }
    }
  }
  void go_on(Duration length) {
    for (Duration passed{0}; passed < length; passed += std::chrono::milliseconds(500)) {
      loop_.advance(std::chrono::milliseconds(500));
      serve();
    }
  }
  // Our renewals succeed until another member's Lease is read. That read is then the only request.
  bool renews_until_a_member_is_read() {
    for (int i = 0; i < 40; ++i) {
      loop_.advance(std::chrono::milliseconds(500));
      while (transport_.pending() > 0) {
        if (transport_.request().method == "GET") {
          if (transport_.pending() == 1) return true;
          answer_renewal(1);
        } else {
          answer_renewal(0);
        }
      }
    }
    return false;
  }
  void answer_renewal(std::size_t index) {
    Json object = *parse_json(transport_.request(index).body);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    transport_.answer_at(index, 200, object.dump());
    loop_.run_ready();
  }
  // What is asked within this time is refused so.
  void refuse(Duration length, const std::string& retry_after) {
    for (Duration passed{0}; passed < length; passed += std::chrono::milliseconds(500)) {
      loop_.advance(std::chrono::milliseconds(500));
      while (transport_.pending() > 0) {
        transport_.answer(429, "{}", {{"Retry-After", retry_after}});
        loop_.run_ready();
      }
    }
  }
  // So many requests for such a Lease have been sent.
  std::size_t asked(const std::string& method, const std::string& lease) const {
    std::size_t count = 0;
    for (const auto& sent : transport_.history) {
      if (sent.method == method && sent.target.find(lease) != std::string::npos) ++count;
    }
    return count;
  }
  std::string shard_holder() const { return membership_->report().shards[0].holder; }

  std::set<int> wanted_;
  bool is_read_ = true;
  std::string record_;
  std::vector<std::string> recorded_;
  std::vector<Json> writes_;       // of the shard's Lease
  std::string refusal_of_shards_;  // the Retry-After of it; empty: they are not refused
  std::shared_ptr<void> in_hand_;
  int deletes_ = 0;
  int version_ = 1;
  std::function<void()> reading_;
  std::string unseen_ = "pods cannot be watched: no";
  Duration unseen_for_{0};
};

using Reports = std::vector<std::string>;

// The live read was answered before the renewal that the watch has shown meanwhile.
TEST_F(MembershipTest, AShardIsNotTakenOverFromAMemberThatTheWatchShowsAliveMeanwhile) {
  Json other = other_member(/*stronger=*/true);
  send_event("ADDED", other);
  serve();
  ASSERT_EQ(shard_holder(), "") << "given up, because the plan gives it to the other";
  Json taken = writes_.back();
  taken["metadata"]["resourceVersion"] = std::to_string(++version_);
  taken["spec"]["holderIdentity"] = other["spec"]["holderIdentity"];
  send_event("MODIFIED", taken);

  ASSERT_TRUE(renews_until_a_member_is_read()) << "it was silent for its duration";
  const std::string read = other.dump();
  other["metadata"]["resourceVersion"] = std::to_string(++version_);
  send_event("MODIFIED", other);
  writes_.clear();
  transport_.answer(200, read);
  serve();
  EXPECT_TRUE(writes_.empty());
  EXPECT_EQ(shard_holder(), string_at(other["spec"], "holderIdentity"));

  ASSERT_TRUE(renews_until_a_member_is_read()) << "it was silent once more";
  transport_.answer(200, other.dump());
  serve();
  EXPECT_EQ(shard_holder(), membership_->report().self);
}

// What a paused process does first may come before the timer of its deadline.
TEST_F(MembershipTest, NothingIsHeldPastTheRenewDeadlineThoughNoTimerHasRun) {
  const auto claim = membership_->claim("job");
  ASSERT_TRUE(claim);
  ASSERT_TRUE(membership_->holds(*claim));
  loop_.pause(std::chrono::seconds(11));
  EXPECT_FALSE(membership_->holds(*claim));
  EXPECT_FALSE(membership_->claim("job"));
  EXPECT_FALSE(membership_->holds("job"));
}

TEST_F(MembershipTest, AShardIsHandedOverOnceNoWorkIsInHand) {
  ASSERT_EQ(reported_, Reports{"gained"});
  in_hand_ = membership_->keep(0);
  send_event("ADDED", other_member(/*stronger=*/true));
  EXPECT_FALSE(membership_->claim("job")) << "nothing new is begun";
  EXPECT_TRUE(membership_->holds("job")) << "what is in hand goes on";
  in_hand_.reset();
  serve();
  EXPECT_EQ(reported_, (Reports{"gained", "handed_over"}));
  EXPECT_FALSE(membership_->holds("job"));
}

TEST_F(MembershipTest, ItsRenewalsWaitForNoOtherRequest) {
  pass(8);
  int writes = 0;
  for (const auto& sent : transport_.history) {
    const bool renews =
        sent.method == "PUT" && sent.target.find("/holdfast-member-") != std::string::npos;
    if (!renews) continue;
    ++writes;
    EXPECT_EQ(sent.urgency, http::Urgency::kVital) << sent.target;
  }
  EXPECT_GE(writes, 2);
}

TEST_F(MembershipTest, AfterALapseARenewalIsTriedAgainSoon) {
  cut_off(std::chrono::seconds(12));
  ASSERT_EQ(membership_->report().state, MembershipState::kLapsed);
  loop_.advance(std::chrono::milliseconds(1100));
  serve();
  EXPECT_EQ(membership_->report().state, MembershipState::kReading);
}

TEST_F(MembershipTest, AReplicaThatReadsForAMomentKeepsItsSeat) {
  cut_off(std::chrono::seconds(12));
  go_on(std::chrono::seconds(2));
  ASSERT_EQ(membership_->report().state, MembershipState::kReading);
  reading_();
  go_on(std::chrono::seconds(4));
  EXPECT_EQ(membership_->report().state, MembershipState::kActing);
  for (const auto& member : membership_->report().members) EXPECT_EQ(member.steps_aside, "");
}

TEST_F(MembershipTest, AReplicaThatReadsForLongStepsAsideAndGivesUpWhatNamesIt) {
  const std::string self = membership_->report().self;
  ASSERT_EQ(shard_holder(), self);
  cut_off(std::chrono::seconds(12));
  // The other one is weaker: by the plan the shard is ours.
  send_event("ADDED", other_member(/*stronger=*/false));
  go_on(std::chrono::seconds(2));
  ASSERT_EQ(membership_->report().state, MembershipState::kReading);
  EXPECT_EQ(shard_holder(), self);
  go_on(std::chrono::seconds(4));
  EXPECT_EQ(shard_holder(), "") << "the other one takes it";
  const auto report = membership_->report();
  EXPECT_EQ(report.members.size(), 2u);
  for (const auto& member : report.members) {
    EXPECT_EQ(member.steps_aside, member.name == self ? unseen_ : "");
  }
  reading_();
  go_on(std::chrono::milliseconds(500));
  EXPECT_EQ(membership_->report().state, MembershipState::kActing);
  for (const auto& member : membership_->report().members) EXPECT_EQ(member.steps_aside, "");
  go_on(std::chrono::milliseconds(500));
  EXPECT_EQ(shard_holder(), self) << "it is planned for us again";
}

TEST_F(MembershipTest, AReplicaThatCannotSeeAKindHandsItsShardsOver) {
  const std::string self = membership_->report().self;
  send_event("ADDED", other_member(/*stronger=*/false));
  unseen_for_ = std::chrono::seconds(9);
  go_on(std::chrono::seconds(4));
  EXPECT_TRUE(membership_->holds("job"));
  unseen_for_ = std::chrono::seconds(10);
  go_on(std::chrono::seconds(4));
  EXPECT_FALSE(membership_->holds("job"));
  EXPECT_EQ(shard_holder(), "");
  EXPECT_EQ(reported_, (Reports{"gained", "handed_over"}));
}

TEST_F(MembershipTest, WhereNobodyElseIsItGoesOnWithWhatItSees) {
  unseen_for_ = std::chrono::minutes(5);
  go_on(std::chrono::seconds(10));
  EXPECT_TRUE(membership_->holds("job"));
}

// What came due while nothing new was begun was turned away, and its timer is spent.
TEST_F(MembershipTest, AShardThatStaysAfterAllIsReported) {
  in_hand_ = membership_->keep(0);
  Json other = other_member(/*stronger=*/true);
  send_event("ADDED", other);
  ASSERT_FALSE(membership_->claim("job"));
  other["metadata"]["resourceVersion"] = std::to_string(++version_);
  send_event("DELETED", other);
  EXPECT_TRUE(membership_->claim("job"));
  EXPECT_EQ(reported_, (Reports{"gained", "kept"}));
  in_hand_.reset();
  serve();
  EXPECT_EQ(reported_, (Reports{"gained", "kept"})) << "once";
}

TEST_F(MembershipTest, NothingIsWrittenWhileNothingIsSilent) {
  writes_.clear();
  pass(60);
  EXPECT_EQ(writes_.size(), 0u);
}

TEST_F(MembershipTest, WhatIsSilentIsWrittenEachTenSecondsAndTakenBackOnce) {
  writes_.clear();
  const std::string acquired = "acquireTime";
  for (int i = 0; i < 60; ++i) {
    record_ = "{\"node/a\":[\"7\"," + std::to_string(15 + i) + "]}";
    pass(1);
  }
  ASSERT_GE(writes_.size(), 5u);
  ASSERT_LE(writes_.size(), 6u);
  EXPECT_EQ(at(writes_.back()["spec"], acquired), at(writes_.front()["spec"], acquired))
      << "it is the same tenure";
  EXPECT_EQ(writes_.back()["spec"]["leaseTransitions"],
            writes_.front()["spec"]["leaseTransitions"]);
  writes_.clear();
  pass(30);
  EXPECT_LE(writes_.size(), 1u) << "what does not change is not written";
  writes_.clear();
  record_.clear();
  pass(30);
  ASSERT_EQ(writes_.size(), 1u);
  EXPECT_EQ(windows_in(writes_[0]), "");
  EXPECT_TRUE(membership_->holds("job"));
}

TEST_F(MembershipTest, AShardIsHandedOverWithWhatIsKnownThen) {
  record_ = R"({"node/a":["7",15]})";
  pass(12);
  writes_.clear();
  record_ = R"({"node/a":["7",23]})";
  send_event("ADDED", other_member(/*stronger=*/true));
  serve();
  ASSERT_EQ(writes_.size(), 1u);
  EXPECT_EQ(string_at(writes_[0]["spec"], "holderIdentity"), "");
  EXPECT_EQ(windows_in(writes_[0]), record_);
}

TEST_F(MembershipTest, WhatOthersHaveSeenIsReportedAndOurOwnIsNot) {
  record_ = R"({"node/a":["7",15]})";
  pass(12);
  EXPECT_TRUE(recorded_.empty());
  Json lease = writes_.back();
  lease["metadata"]["annotations"]["holdfast.dev/windows"] = R"({"node/a":["7",40]})";
  lease["metadata"]["resourceVersion"] = std::to_string(++version_);
  lease["spec"]["holderIdentity"] = "another-bcdfg";
  send_event("MODIFIED", lease);
  EXPECT_EQ(recorded_, std::vector<std::string>{R"({"node/a":["7",40]})"});
}

// What its holder needs to see may take a while to list.
TEST_F(MembershipTest, AShardIsWantedWhileItIsHeldOrPlannedAndOnceItsHolderMissesRenewals) {
  EXPECT_EQ(wanted_, std::set<int>{0});
  in_hand_ = membership_->keep(0);
  Json other = other_member(/*stronger=*/true);
  send_event("ADDED", other);
  serve();
  EXPECT_EQ(wanted_, std::set<int>{0}) << "it is handed over once no work is in hand";
  in_hand_.reset();
  serve();
  EXPECT_EQ(shard_holder(), "");
  EXPECT_TRUE(wanted_.empty());
  Json taken = writes_.back();
  taken["metadata"]["resourceVersion"] = std::to_string(++version_);
  taken["spec"]["holderIdentity"] = other["spec"]["holderIdentity"];
  send_event("MODIFIED", taken);
  pass(6);
  EXPECT_TRUE(wanted_.empty());
  pass(4);
  EXPECT_EQ(wanted_, std::set<int>{0}) << "half of its duration is over";
  EXPECT_NE(shard_holder(), membership_->report().self);
  other["metadata"]["resourceVersion"] = std::to_string(++version_);
  send_event("MODIFIED", other);
  pass(1);
  EXPECT_TRUE(wanted_.empty()) << "it lives after all";
}

TEST_F(MembershipTest, ARecordStandsUntilTheHolderHasReadTheShard) {
  const std::string theirs = R"({"still/a/b":["7",40]})";
  is_read_ = false;
  send_event("ADDED", other_member(/*stronger=*/true));
  serve();
  Json lease = writes_.back();
  lease["metadata"]["annotations"]["holdfast.dev/windows"] = theirs;
  lease["metadata"]["resourceVersion"] = std::to_string(++version_);
  lease["spec"]["holderIdentity"] = "one-that-is-gone";
  send_event("MODIFIED", lease);
  writes_.clear();
  ASSERT_TRUE(renews_until_a_member_is_read());
  transport_.answer(404, "{}");
  pass(20);
  ASSERT_FALSE(writes_.empty());
  EXPECT_EQ(shard_holder(), membership_->report().self);
  for (const Json& write : writes_) EXPECT_EQ(windows_in(write), theirs);
  writes_.clear();
  is_read_ = true;
  pass(12);
  ASSERT_EQ(writes_.size(), 1u);
  EXPECT_EQ(windows_in(writes_[0]), "") << "nothing is silent any more";
}

// Its next owner must not take its jobs for held up by a write of ours.
TEST_F(MembershipTest, AShardThatIsToGoIsNotWrittenInBetween) {
  record_ = R"({"node/a":["7",15]})";
  in_hand_ = membership_->keep(0);
  send_event("ADDED", other_member(/*stronger=*/true));
  writes_.clear();
  record_ = R"({"node/a":["7",16]})";
  pass(12);
  EXPECT_FALSE(membership_->claim("job"));
  EXPECT_EQ(writes_.size(), 0u);
}

// ---- Retry-After.

TEST_F(MembershipTest, ARenewalWaitsForAsLongAsItIsAskedTo) {
  transport_.history.clear();
  refuse(std::chrono::seconds(2), "5");
  ASSERT_EQ(asked("PUT", "holdfast-member"), 1u);
  go_on(std::chrono::milliseconds(4500));
  EXPECT_EQ(asked("PUT", "holdfast-member"), 1u);
  go_on(std::chrono::milliseconds(500));
  EXPECT_EQ(asked("PUT", "holdfast-member"), 2u) << "and no longer";
  EXPECT_EQ(reported_, Reports{"gained"});
}

TEST_F(MembershipTest, ARenewalThatHasToWaitForLongerThanTheDeadlineEndsTheTenure) {
  transport_.history.clear();
  refuse(std::chrono::seconds(2), "20");
  go_on(std::chrono::seconds(19));
  EXPECT_EQ(asked("PUT", "holdfast-member"), 1u);
  EXPECT_EQ(membership_->report().state, MembershipState::kLapsed);
  EXPECT_EQ(reported_, (Reports{"gained", "lapsed"}));
  go_on(std::chrono::seconds(1));
  EXPECT_EQ(asked("PUT", "holdfast-member"), 2u);
  EXPECT_EQ(membership_->report().state, MembershipState::kReading);
}

TEST_F(MembershipTest, WritesOfShardsWaitForAsLongAsTheyAreAskedTo) {
  record_ = R"({"node/a":["7",15]})";
  go_on(std::chrono::seconds(8));
  transport_.history.clear();
  refusal_of_shards_ = "20";
  go_on(std::chrono::seconds(3));
  ASSERT_EQ(asked("PUT", "holdfast-shard"), 1u);
  refusal_of_shards_.clear();
  transport_.history.clear();
  go_on(std::chrono::seconds(16));
  EXPECT_EQ(asked("PUT", "holdfast-shard"), 0u);
  go_on(std::chrono::seconds(6));
  EXPECT_EQ(asked("PUT", "holdfast-shard"), 1u);
}

// To let go of it takes a write: until that may be sent, nobody else could take it.
TEST_F(MembershipTest, AShardThatCannotBeHandedOverYetIsWorkedOn) {
  record_ = R"({"node/a":["7",15]})";
  go_on(std::chrono::seconds(8));
  transport_.history.clear();
  refusal_of_shards_ = "20";
  go_on(std::chrono::seconds(3));
  ASSERT_EQ(asked("PUT", "holdfast-shard"), 1u);
  refusal_of_shards_.clear();
  in_hand_ = membership_->keep(0);
  send_event("ADDED", other_member(/*stronger=*/true));
  EXPECT_TRUE(membership_->claim("job"));
  in_hand_.reset();
  EXPECT_TRUE(membership_->claim("job"));
}

TEST_F(MembershipTest, AGoodbyeIsSaidOnceWhateverItWasAskedFor) {
  transport_.history.clear();
  refuse(std::chrono::seconds(2), "20");
  membership_->leave([] {});
  loop_.run_ready();
  EXPECT_EQ(asked("DELETE", "holdfast-member"), 1u);
  serve();
}

// Its holder never renews it.
Json dead_member(const std::string& holder, std::uint64_t version) {
  LeaseWrite write;
  write.namespace_ = "holdfast-system";
  write.holder = holder;
  write.shards = 1;
  write.duration = std::chrono::seconds(15);
  Json lease = *parse_json(member_lease_body(write, write.holder));
  lease["metadata"]["uid"] = "uid-of-" + write.holder;
  lease["metadata"]["resourceVersion"] = std::to_string(version);
  return lease;
}

// A replica that joins later would count it as alive for one duration more.
TEST_F(MembershipTest, ADeadMemberIsTidiedAwayAfterTwoOfItsDurations) {
  send_event("ADDED", dead_member("dead", ++version_));
  pass(28);
  EXPECT_EQ(deletes_, 0);
  pass(6);
  EXPECT_GE(deletes_, 1);
}

TEST_F(MembershipTest, OfManyDeadMembersTheOldestAreTidiedAwayInOneShortLife) {
  for (int i = 0; i < 20; ++i) {
    send_event("ADDED", dead_member("dead-" + std::to_string(i), ++version_));
  }
  pass(14);
  EXPECT_EQ(deletes_, 0);
  pass(14);
  EXPECT_GE(deletes_, 4);
}

}  // namespace
}  // namespace holdfast::membership
