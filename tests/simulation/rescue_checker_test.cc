// The checker of S25 sees what it is there to see: in a small world, a rogue frees other
// controllers' pods in each wrong way.
#include <gtest/gtest.h>

#include "reconciler/rescue/rescue.h"
#include "tests/simulation/ledger_rescue.h"
#include "tests/simulation/others.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

constexpr int kNodes = 5;

class RescueChecker : public testing::Test {
 protected:
  RescueChecker() {
    server_.on_applied([this](const Applied& write) { applied(write); });
    gateway_.ask("admin", "POST", "/api/v1/namespaces",
                 {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kHome}}}});
    cluster_.start(kNodes);
    others_.start(7);
    pass(seconds(30));
  }
  void applied(const Applied& write) {
    gateway_.changed();
    const Json& object = write.after ? *write.after : *write.before;
    if (write.resource == "pods") {
      cluster_.pod_changed(write.before, write.after);
      ledger_.pod_written(write, rogue_writes_);
    } else if (write.resource == "leases") {
      ledger_.node_renewed(string_at(at(object, "metadata"), "name"));
    }
  }
  void pass(Duration time) { scheduler_.run_until(scheduler_.now() + time); }

  // One of this kind that has a node and has not ended.
  Json pod(const std::string& kind = "plain") {
    Json found;
    server_.for_each("pods", [&](const Json& pod) {
      const bool is_its = string_at(at(pod, "metadata"), "name").starts_with(kind + "-");
      const std::string phase = string_at(at(pod, "status"), "phase");
      if (is_its && phase != "Succeeded" && !node_of(pod).empty()) found = pod;
    });
    EXPECT_FALSE(found.is_null()) << kind;
    return found;
  }
  static std::string node_of(const Json& pod) { return string_at(at(pod, "spec"), "nodeName"); }
  void silence(const std::string& node) {
    for (int i = 0; i < kNodes; ++i) {
      if (cluster_.nodes()[static_cast<std::size_t>(i)].name == node) cluster_.silence(i, false);
    }
  }

  Delivery delivery(const std::string& method, const std::string& target) const {
    Delivery delivery;
    delivery.request.method = method;
    delivery.request.target = target;
    delivery.replica = 0;
    delivery.life = 1;
    delivery.sent = scheduler_.now();
    return delivery;
  }
  void look(const std::string& node) {
    const Delivery read =
        delivery("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + node);
    ledger_.handled(read);
    ledger_.answered(read, 200);
  }
  static Json freeing(const Json& pod) {
    return {
        {"metadata",
         {{"uid", uid_of(pod)}, {"resourceVersion", at(at(pod, "metadata"), "resourceVersion")}}},
        {"status",
         {{"phase", "Failed"},
          {"conditions", Json::array({{{"type", reconciler::kFreedCondition},
                                       {"status", "True"},
                                       {"reason", reconciler::kFreedReason}}})}}}};
  }
  static std::string target(const Json& pod) {
    return pod_target(kHome, string_at(at(pod, "metadata"), "name"));
  }
  void send_freeing(const Json& pod) {
    ledger_.sent(delivery("PATCH", target(pod) + "/status"), freeing(pod));
  }
  void write_freeing(const Json& pod) {
    rogue_writes_ = true;
    const Json body = {{"status", freeing(pod)["status"]}};
    gateway_.ask("holdfast", "PATCH", target(pod) + "/status", body,
                 "application/merge-patch+json");
    rogue_writes_ = false;
  }

  static inline const std::string kHome = kNamespaces[0];
  Scheduler scheduler_;
  ApiServer server_{[this] { return Gateway::beginning() + scheduler_.now(); }, 1};
  Gateway gateway_{scheduler_, server_, 2};
  Strikes strikes_{Selection{}};
  Cluster cluster_{scheduler_, gateway_, strikes_, 3};
  OtherControllers others_{scheduler_, gateway_};
  std::string violation_;
  RescueLedger ledger_{{scheduler_, gateway_, cluster_,
                        [this](const std::string& what) {
                          if (violation_.empty()) violation_ = what;
                        },
                        [] { return std::int64_t{1'000'000}; }}};
  bool rogue_writes_ = false;
};

TEST_F(RescueChecker, AFreeingAfterTheWindowAndALookIsWell) {
  const Json its = pod();
  silence(node_of(its));
  pass(seconds(72));
  look(node_of(its));
  send_freeing(its);
  write_freeing(its);
  ledger_.sent(delivery("DELETE", target(its)), {{"preconditions", {{"uid", uid_of(its)}}}});
  EXPECT_EQ(violation_, "");
}

TEST_F(RescueChecker, SeesThatNobodyLookedRightBefore) {
  const Json its = pod();
  silence(node_of(its));
  pass(seconds(72));
  send_freeing(its);
  EXPECT_NE(violation_.find("no live look"), std::string::npos) << violation_;
}

TEST_F(RescueChecker, SeesThatTheLookIsOld) {
  const Json its = pod();
  silence(node_of(its));
  pass(seconds(72));
  look(node_of(its));
  pass(seconds(7));
  send_freeing(its);
  EXPECT_NE(violation_.find("no live look"), std::string::npos) << violation_;
}

TEST_F(RescueChecker, SeesThatTheNodeLives) {
  const Json its = pod();
  look(node_of(its));
  send_freeing(its);
  EXPECT_NE(violation_.find("renewed its Lease"), std::string::npos) << violation_;
}

TEST_F(RescueChecker, SeesThatMostNodesAreSilent) {
  const Json its = pod();
  for (int i = 0; i < kNodes; ++i) cluster_.silence(i, false);
  pass(seconds(75));
  look(node_of(its));
  send_freeing(its);
  EXPECT_NE(violation_.find("other nodes are silent"), std::string::npos) << violation_;
}

TEST_F(RescueChecker, SeesThatTheWriteNamesNoPod) {
  const Json its = pod();
  silence(node_of(its));
  pass(seconds(72));
  look(node_of(its));
  Json body = freeing(its);
  body["metadata"].erase("uid");
  ledger_.sent(delivery("PATCH", target(its) + "/status"), body);
  EXPECT_NE(violation_.find("without its UID"), std::string::npos) << violation_;
}

TEST_F(RescueChecker, SeesADeletionOfAPodThatIsNotFreed) {
  const Json its = pod();
  ledger_.sent(delivery("DELETE", target(its)), {{"preconditions", {{"uid", uid_of(its)}}}});
  EXPECT_NE(violation_.find("before it is freed"), std::string::npos) << violation_;
}

TEST_F(RescueChecker, SeesThatAPodMayNotBeFreed) {
  for (const char* const kind : {"claim", "bare", "unlabelled", "malformed"}) {
    violation_.clear();
    write_freeing(pod(kind));
    EXPECT_NE(violation_.find("may not be freed"), std::string::npos) << kind;
  }
}

}  // namespace
}  // namespace holdfast::simulation
