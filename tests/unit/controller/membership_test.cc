// What a replica does with shards that come, stay and go. Who gets which is shards_test.cc's, what
// becomes of jobs in a world of many replicas the simulation's.
#include "operator/controller/membership.h"

#include "operator/core/json.h"
#include "tests/unit/kube/client_fixture.h"

namespace holdfast::controller {
namespace {

class MembershipTest : public kube::ClientTest {
 protected:
  MembershipTest() {
    transport_.date = Time(std::chrono::seconds(1'800'000'000));
    Membership::Handlers handlers;
    handlers.gained = [this](int) { told_.emplace_back("gained"); };
    handlers.kept = [this](int) { told_.emplace_back("kept"); };
    handlers.lost = [this](int, const char* why) { told_.emplace_back(why); };
    handlers.busy = [this](int) { return busy_; };
    handlers.refresh = [this](auto done) { reading_ = std::move(done); };
    handlers.unseen = [this](Duration patience) { return unseen_for_ >= patience ? unseen_ : ""; };
    handlers.proof = [] {};
    handlers.refuse = [](const Error&) {};
    Membership::Config config;
    config.shards = 1;
    membership_ = std::make_unique<Membership>(
        Membership::Dependencies{loop_, client_, random_, Log()}, config, std::move(handlers));
    membership_->leases().start();
    loop_.run_ready();
    transport_.open_stream();
    tell("BOOKMARK",
         {{"metadata",
           {{"resourceVersion", "1"}, {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}});
    membership_->join();
    serve();
  }
  void TearDown() override {
    membership_->leases().stop();
    ClientTest::TearDown();
    membership_.reset();
  }

  void tell(const std::string& type, Json object) {
    object["apiVersion"] = "coordination.k8s.io/v1";
    object["kind"] = "Lease";
    transport_.stream_lines({Json({{"type", type}, {"object", std::move(object)}}).dump()});
    loop_.run_ready();
  }
  // Every write is applied, and shown by the watch.
  void serve() {
    loop_.run_ready();
    while (transport_.pending() > 0) {
      const bool is_new = transport_.request().method == "POST";
      Json object = *parse_json(transport_.request().body);
      object["metadata"]["uid"] = "uid-of-" + string_at(object["metadata"], "name");
      object["metadata"]["resourceVersion"] = std::to_string(++version_);
      transport_.answer(is_new ? 201 : 200, object.dump());
      tell(is_new ? "ADDED" : "MODIFIED", object);
    }
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
  std::vector<std::string> told_;
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
  std::string shard_holder() const { return membership_->report().shards[0].holder; }

  bool busy_ = false;
  int version_ = 1;
  std::function<void()> reading_;
  std::string unseen_ = "pods cannot be watched: no";
  Duration unseen_for_{0};
};

using Told = std::vector<std::string>;

TEST_F(MembershipTest, AShardIsHandedOverOnceNoWorkIsInHand) {
  ASSERT_EQ(told_, Told{"gained"});
  busy_ = true;
  tell("ADDED", other_member(/*stronger=*/true));
  EXPECT_FALSE(membership_->claim("job")) << "nothing new is begun";
  EXPECT_TRUE(membership_->holds("job")) << "what is in hand goes on";
  busy_ = false;
  membership_->work_ended(0);
  serve();
  EXPECT_EQ(told_, (Told{"gained", "handed_over"}));
  EXPECT_FALSE(membership_->holds("job"));
}

TEST_F(MembershipTest, AfterALapseARenewalIsTriedAgainSoon) {
  cut_off(std::chrono::seconds(12));
  ASSERT_EQ(membership_->report().state, "lapsed");
  loop_.advance(std::chrono::milliseconds(1100));
  serve();
  EXPECT_EQ(membership_->report().state, "reading");
}

TEST_F(MembershipTest, AReplicaThatReadsForAMomentKeepsItsSeat) {
  cut_off(std::chrono::seconds(12));
  go_on(std::chrono::seconds(2));
  ASSERT_EQ(membership_->report().state, "reading");
  reading_();
  go_on(std::chrono::seconds(4));
  EXPECT_EQ(membership_->report().state, "acting");
  for (const auto& member : membership_->report().members) EXPECT_EQ(member.steps_aside, "");
}

TEST_F(MembershipTest, AReplicaThatReadsForLongStepsAsideAndGivesUpWhatNamesIt) {
  const std::string self = membership_->report().self;
  ASSERT_EQ(shard_holder(), self);
  cut_off(std::chrono::seconds(12));
  // The other one is weaker: by the plan the shard is ours.
  tell("ADDED", other_member(/*stronger=*/false));
  go_on(std::chrono::seconds(2));
  ASSERT_EQ(membership_->report().state, "reading");
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
  EXPECT_EQ(membership_->report().state, "acting");
  for (const auto& member : membership_->report().members) EXPECT_EQ(member.steps_aside, "");
  go_on(std::chrono::milliseconds(500));
  EXPECT_EQ(shard_holder(), self) << "it is planned for us again";
}

TEST_F(MembershipTest, AReplicaThatCannotSeeAKindHandsItsShardsOver) {
  const std::string self = membership_->report().self;
  tell("ADDED", other_member(/*stronger=*/false));
  unseen_for_ = std::chrono::seconds(9);
  go_on(std::chrono::seconds(4));
  EXPECT_TRUE(membership_->holds("job"));
  unseen_for_ = std::chrono::seconds(10);
  go_on(std::chrono::seconds(4));
  EXPECT_FALSE(membership_->holds("job"));
  EXPECT_EQ(shard_holder(), "");
  EXPECT_EQ(told_, (Told{"gained", "handed_over"}));
}

TEST_F(MembershipTest, WhereNobodyElseIsItGoesOnWithWhatItSees) {
  unseen_for_ = std::chrono::minutes(5);
  go_on(std::chrono::seconds(10));
  EXPECT_TRUE(membership_->holds("job"));
}

// What came due while nothing new was begun was turned away, and its timer is spent.
TEST_F(MembershipTest, AShardThatStaysAfterAllIsToldOf) {
  busy_ = true;
  Json other = other_member(/*stronger=*/true);
  tell("ADDED", other);
  ASSERT_FALSE(membership_->claim("job"));
  other["metadata"]["resourceVersion"] = std::to_string(++version_);
  tell("DELETED", other);
  EXPECT_TRUE(membership_->claim("job"));
  EXPECT_EQ(told_, (Told{"gained", "kept"}));
  membership_->work_ended(0);
  serve();
  EXPECT_EQ(told_, (Told{"gained", "kept"})) << "once";
}

}  // namespace
}  // namespace holdfast::controller
