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
    handlers.refresh = [](auto done) { done(); };
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
  // A member to whom the only shard falls as soon as it is there.
  Json stronger_member() {
    std::string name;
    for (int i = 0; name.empty(); ++i) {
      const std::string other = "other-" + std::to_string(i);
      const std::string self = membership_->report().self;
      if (reconciler::plan_shards(1, {self, other})[0] == other) name = other;
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
  bool busy_ = false;
  int version_ = 1;
};

using Told = std::vector<std::string>;

TEST_F(MembershipTest, AShardIsHandedOverOnceNoWorkIsInHand) {
  ASSERT_EQ(told_, Told{"gained"});
  busy_ = true;
  tell("ADDED", stronger_member());
  EXPECT_FALSE(membership_->claim("job")) << "nothing new is begun";
  EXPECT_TRUE(membership_->holds("job")) << "what is in hand goes on";
  busy_ = false;
  membership_->work_ended(0);
  serve();
  EXPECT_EQ(told_, (Told{"gained", "handed_over"}));
  EXPECT_FALSE(membership_->holds("job"));
}

// What came due while nothing new was begun was turned away, and its timer is spent.
TEST_F(MembershipTest, AShardThatStaysAfterAllIsToldOf) {
  busy_ = true;
  Json other = stronger_member();
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
