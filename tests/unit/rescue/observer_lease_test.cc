// Which replica observes: at most one by its own clock, and soon another if that one dies.
#include "operator/rescue/observer_lease.h"

#include "tests/unit/kube/client_fixture.h"
#include "tests/unit/rescue/object_server.h"

namespace holdfast::rescue {
namespace {

using std::chrono::seconds;

const char* const kPath =
    "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/holdfast-observer";

class ObserverLeaseTest : public kube::ClientTest {
 protected:
  ObserverLeaseTest() { transport_.date = Time(seconds(1'800'000'000)); }

  void pass(Duration time) {
    for (Duration passed{0}; passed < time; passed += seconds(1)) {
      loop_.advance(seconds(1));
      server_.serve();
    }
  }
  Json lease_of(const std::string& holder) {
    return {{"metadata",
             {{"name", "holdfast-observer"},
              {"namespace", "holdfast-system"},
              {"annotations", {{"holdfast.dev/windows", "theirs"}}}}},
            {"spec", {{"holderIdentity", holder}, {"leaseTransitions", 3}}}};
  }
  std::string holder() {
    return string_at(at(server_.objects.at(kPath), "spec"), "holderIdentity");
  }

  ObjectServer server_{loop_, transport_};
  reconciler::MemberTimings timings_;
  std::vector<std::string> recorded_;
  ObserverLease lease_{{loop_, client_, Log()},
                       {"holdfast-system", "me", timings_},
                       {[] { return std::string("ours"); },
                        [this](const std::string& text) { recorded_.push_back(text); }, [] {}}};
};

TEST_F(ObserverLeaseTest, ALeaseThatIsNotThereIsTakenAtOnce) {
  lease_.start();
  EXPECT_FALSE(lease_.acting());
  server_.serve();
  EXPECT_TRUE(lease_.acting());
  EXPECT_EQ(holder(), "me");
  EXPECT_EQ(server_.objects.at(kPath)["metadata"]["annotations"]["holdfast.dev/windows"], "ours");
}

TEST_F(ObserverLeaseTest, AnothersLeaseIsTakenOnlyAfterItsDurationWithoutAChange) {
  server_.put(kPath, lease_of("other"));
  lease_.start();
  pass(seconds(10));
  server_.put(kPath, lease_of("other"));  // it renews
  pass(timings_.lease_duration);
  EXPECT_FALSE(lease_.acting());
  EXPECT_EQ(holder(), "other");
  pass(2 * timings_.retry_period + seconds(1));
  EXPECT_TRUE(lease_.acting());
  EXPECT_EQ(holder(), "me");
  EXPECT_EQ(server_.objects.at(kPath)["spec"]["leaseTransitions"], 4);
  EXPECT_EQ(recorded_.front(), "theirs") << "the windows of the one before count on";
}

TEST_F(ObserverLeaseTest, WithoutARenewalItNoLongerActs) {
  lease_.start();
  server_.serve();
  server_.refuse_with = 500;
  pass(timings_.renew_deadline + seconds(1));
  EXPECT_FALSE(lease_.acting()) << "before anybody else may take it";
  server_.refuse_with = 0;
  pass(timings_.lease_duration);
  EXPECT_TRUE(lease_.acting());
}

TEST_F(ObserverLeaseTest, WhoeverLosesARaceDoesNotAct) {
  lease_.start();
  loop_.run_ready();
  ASSERT_EQ(transport_.request().method, "GET");
  transport_.answer(404, R"({"kind": "Status", "reason": "NotFound"})");
  server_.put(kPath, lease_of("other"));
  server_.serve();
  EXPECT_FALSE(lease_.acting());
  EXPECT_EQ(holder(), "other");
}

TEST_F(ObserverLeaseTest, WhoeverFindsAnotherHolderStopsActing) {
  lease_.start();
  server_.serve();
  ASSERT_TRUE(lease_.acting());
  server_.put(kPath, lease_of("other"));
  pass(timings_.retry_period);
  EXPECT_FALSE(lease_.acting());
}

TEST_F(ObserverLeaseTest, AStopFreesIt) {
  lease_.start();
  server_.serve();
  bool stopped = false;
  lease_.stop([&] { stopped = true; });
  EXPECT_FALSE(lease_.acting());
  server_.serve();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(holder(), "");
}

TEST_F(ObserverLeaseTest, AStopLeavesAnothersAlone) {
  server_.put(kPath, lease_of("other"));
  lease_.start();
  server_.serve();
  bool stopped = false;
  lease_.stop([&] { stopped = true; });
  server_.serve();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(holder(), "other");
}

}  // namespace
}  // namespace holdfast::rescue
