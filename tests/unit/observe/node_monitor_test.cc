// How long a node has been silent: by its Lease, or by its Ready condition if it never had one.
#include "operator/observe/node_monitor.h"

#include <gtest/gtest.h>

#include "tests/unit/kube/client_fixture.h"

namespace holdfast::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kWindow{40};
const char* const kNode = "virtual-1";

kube::Kind pods() {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.decode = kube::decode_bare;
  return kind;
}

std::string object_json(const std::string& name, int version, const std::string& status = "{}") {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"","uid":"u","resourceVersion":")" +
         std::to_string(version) + R"("},"status":)" + status + "}";
}
std::string lease_json(const std::string& name, int version) {
  return R"({"metadata":{"name":")" + name +
         R"(","namespace":"kube-node-lease","uid":"u","resourceVersion":")" +
         std::to_string(version) + R"("}})";
}
std::string event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}
std::string node_is(const std::string& ready, const std::string& since = "2026-06-01T12:00:00Z") {
  return object_json(kNode, 7,
                     R"({"conditions":[{"type":"Ready","status":")" + ready +
                         R"(","lastTransitionTime":")" + since + R"("}]})");
}

class NodeMonitorTest : public kube::ClientTest {
 protected:
  // One node and these Leases are there.
  void watching(const std::vector<std::string>& leases = {}) {
    monitor_.start();
    loop_.run_ready();
    ASSERT_EQ(transport_.streams(), 2u);
    for (std::size_t i = 0; i < transport_.streams(); ++i) {
      transport_.open_stream(i);
      loop_.run_ready();
      const bool nodes = transport_.stream(i).target.find("/nodes") != std::string::npos;
      std::vector<std::string> lines;
      if (nodes) lines.push_back(event("ADDED", object_json(kNode, 5)));
      if (!nodes) lines.insert(lines.end(), leases.begin(), leases.end());
      if (!nodes) leases_stream_ = i;
      if (nodes) nodes_stream_ = i;
      lines.push_back(
          R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6","annotations":)"
          R"({"k8s.io/initial-events-end":"true"}}}})");
      transport_.stream_lines(lines, i);
      loop_.run_ready();
    }
    ASSERT_TRUE(monitor_.nodes().live() && monitor_.leases().live());
    monitor_.proof();
  }
  void live(seconds time) {
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      loop_.advance(seconds(1));
      monitor_.proof();
    }
  }
  // The monitor asks for the node's condition and gets this.
  void condition(const std::string& object) {
    loop_.run_ready();
    ASSERT_EQ(transport_.pending(), 1u) << "one read of the condition";
    ASSERT_EQ(transport_.request().target, "/api/v1/nodes/virtual-1");
    transport_.answer(200, object);
    loop_.run_ready();
  }
  // The stream that was opened last is theirs.
  void pods_are_listed() {
    loop_.run_ready();
    const std::size_t last = transport_.streams() - 1;
    transport_.open_stream(last);
    transport_.stream_lines(
        {R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6","annotations":)"
         R"({"k8s.io/initial-events-end":"true"}}}})"},
        last);
    loop_.run_ready();
  }
  void node_changes() {
    transport_.stream_lines({event("MODIFIED", object_json(kNode, ++version_))}, nodes_stream_);
    loop_.run_ready();
  }
  Task<void> confirm(bool& ended) {
    auto read = monitor_.of_leases().confirm(kNode, loop_.now() + seconds(5));
    const Result<> result = co_await read;
    ended = result.ok();
  }
  reconciler::NodeObservation seen() { return monitor_.observe(kNode, kWindow); }

  cache::Informer pods_{{loop_, client_, random_, Log()}, pods(), {}};
  NodeMonitor monitor_{{loop_, client_, random_, Log(), pods_, {}}};
  std::size_t nodes_stream_ = 0;
  std::size_t leases_stream_ = 0;
  int version_ = 10;
};

TEST_F(NodeMonitorTest, ANodeThatNeverHadALeaseIsNotSilentWhileItsConditionIsKnown) {
  watching();
  EXPECT_FALSE(seen().has_lease);
  EXPECT_FALSE(seen().silent_for) << "not before its condition was read";
  condition(node_is("True"));
  live(seconds(200));
  EXPECT_FALSE(seen().silent_for) << "no Lease is no silence";
  EXPECT_EQ(transport_.pending(), 0u) << "its condition is read again only after a change";
}

TEST_F(NodeMonitorTest, ItIsSilentFromTheMomentItsConditionWasSeenUnknown) {
  watching();
  seen();
  condition(node_is("True"));
  live(seconds(100));
  node_changes();
  condition(node_is("Unknown"));
  EXPECT_EQ(seen().silent_for, seconds(0)) << "not from the first look";
  live(seconds(30));
  node_changes();  // a label, say: the condition is the same
  condition(node_is("Unknown"));
  live(seconds(10));
  EXPECT_EQ(seen().silent_for, kWindow);
}

TEST_F(NodeMonitorTest, AListOfMorePodsIsNoGapUntilItFails) {
  watching();
  pods_.start();
  pods_are_listed();
  live(seconds(20));
  const reconciler::LiveTime before = monitor_.pods_time("");
  pods_.widen({"more", ""});
  live(seconds(20));
  ASSERT_FALSE(pods_.live());
  EXPECT_EQ(monitor_.pods_time("").epoch, before.epoch);
  EXPECT_EQ(monitor_.pods_time("").now - before.now, seconds(20));
  transport_.end_stream(transport_.streams() - 1, make_error(ErrorCode::kTransient, "no"));
  live(seconds(20));
  EXPECT_FALSE(pods_.widening(""));
  pods_are_listed();
  live(seconds(1));
  EXPECT_GT(monitor_.pods_time("").epoch, before.epoch);
}

TEST_F(NodeMonitorTest, AConditionThatIsKnownAgainEndsTheSilence) {
  watching();
  seen();
  condition(node_is("Unknown"));
  live(seconds(35));
  EXPECT_EQ(seen().silent_for, seconds(35));
  node_changes();
  condition(node_is("False", "2026-06-01T12:01:00Z"));
  EXPECT_FALSE(seen().silent_for) << "a node that is not ready speaks";
  node_changes();
  condition(node_is("Unknown", "2026-06-01T12:02:00Z"));
  EXPECT_EQ(seen().silent_for, seconds(0)) << "a new silence begins anew";
}

TEST_F(NodeMonitorTest, AConditionThatCannotBeReadIsReadAgainAfterARenewal) {
  watching();
  seen();
  loop_.run_ready();
  ASSERT_EQ(transport_.pending(), 1u);
  transport_.answer(403, "{}");
  loop_.run_ready();
  EXPECT_FALSE(seen().silent_for);
  live(seconds(1));
  condition(node_is("Unknown"));
  live(seconds(3));
  EXPECT_EQ(seen().silent_for, seconds(3));
}

TEST_F(NodeMonitorTest, ALeaseThatWasThereAndWentAwayIsSilentSinceItsLastChange) {
  const std::string lease = object_json(kNode, 5);
  watching({event("ADDED", lease)});
  live(seconds(20));
  EXPECT_EQ(seen().silent_for, seconds(20));
  transport_.stream_lines({event("DELETED", object_json(kNode, 9))}, leases_stream_);
  loop_.run_ready();
  live(seconds(20));
  EXPECT_TRUE(seen().has_lease);
  EXPECT_EQ(seen().silent_for, seconds(40)) << "its node may be dead";
  EXPECT_EQ(transport_.pending(), 0u) << "its condition is not asked for";
}

TEST_F(NodeMonitorTest, AViewWithLiveReadsCountsUpToWhenTheyWereAskedFor) {
  watching({event("ADDED", object_json(kNode, 5))});
  (void)monitor_.observe("gone-1", kWindow);
  live(seconds(20));
  const LookTimes asked = monitor_.look_times("media");
  live(seconds(20));
  EXPECT_EQ(monitor_.observe(kNode, kWindow, asked).silent_for, seconds(20));
  EXPECT_EQ(monitor_.observe("gone-1", kWindow, asked).missing_for, seconds(20));
  EXPECT_EQ(seen().silent_for, seconds(40));
  transport_.stream_lines({event("MODIFIED", object_json(kNode, 9))}, leases_stream_);
  loop_.run_ready();
  live(seconds(2));
  EXPECT_EQ(monitor_.observe(kNode, kWindow, asked).silent_for, seconds(0));
  EXPECT_EQ(seen().silent_for, seconds(2));
}

TEST_F(NodeMonitorTest, WhatWasSeenBeforeAGapCountsForWordsAlone) {
  watching({event("ADDED", object_json(kNode, 5))});
  live(seconds(20));
  loop_.advance(seconds(30));
  monitor_.proof();
  live(seconds(4));
  EXPECT_EQ(seen().silent_for, seconds(4));
  EXPECT_EQ(seen().unheard_for, seconds(20) + reconciler::kGapLimit + seconds(4));
}

TEST_F(NodeMonitorTest, OfEachSilenceOfANodeItTellsOnce) {
  int told = 0;
  monitor_.on_node_change([&](const std::string& node) { told += node == kNode ? 1 : 0; });
  watching({event("ADDED", object_json(kNode, 5))});
  told = 0;
  live(seconds(11));
  EXPECT_TRUE(seen().is_heard);
  EXPECT_EQ(told, 0);
  live(seconds(2));
  EXPECT_FALSE(seen().is_heard);
  EXPECT_EQ(told, 1);
  live(seconds(60));
  EXPECT_EQ(told, 1);
  transport_.stream_lines({event("MODIFIED", object_json(kNode, 9))}, leases_stream_);
  loop_.run_ready();
  EXPECT_FALSE(seen().is_heard) << "only after the next look its next silence is a new one";
  live(seconds(11));
  EXPECT_TRUE(seen().is_heard);
  EXPECT_EQ(told, 1);
  live(seconds(2));
  EXPECT_EQ(told, 2);
  // An outage: then whoever lives renews.
  loop_.advance(seconds(60));
  monitor_.proof();
  live(seconds(2));
  EXPECT_TRUE(seen().is_heard);
  EXPECT_EQ(told, 2);
  live(seconds(11));
  EXPECT_FALSE(seen().is_heard);
  EXPECT_EQ(told, 3);
}

TEST_F(NodeMonitorTest, AFirstLeaseEndsTheJudgementByCondition) {
  watching();
  seen();
  condition(node_is("Unknown"));
  live(seconds(30));
  transport_.stream_lines({event("ADDED", object_json(kNode, 9))}, leases_stream_);
  loop_.run_ready();
  EXPECT_TRUE(seen().has_lease);
  EXPECT_EQ(seen().silent_for, seconds(0));
}

// A kubelet whose Node object was deleted makes its Lease again, and nobody deletes that Lease.
TEST_F(NodeMonitorTest, TheLeasesOfDeletedNodesHoldNoVerdictBack) {
  int version = 20;
  watching({event("ADDED", lease_json(kNode, 5))});
  for (int renewal = 0; renewal < 4; ++renewal) {
    live(seconds(2));
    for (const std::string name : {kNode, "deleted-1", "deleted-2", "deleted-3", "deleted-4"}) {
      transport_.stream_lines({event("MODIFIED", lease_json(name, ++version))}, leases_stream_);
      loop_.run_ready();
    }
  }
  live(seconds(45));
  EXPECT_EQ(seen().silent_for, seconds(45));
  EXPECT_FALSE(seen().breaker);
}

TEST_F(NodeMonitorTest, ALeaseThatIsSeenBeforeItsNodeCountsFromTheNodesCreation) {
  watching({event("ADDED", lease_json(kNode, 5))});
  transport_.stream_lines({event("ADDED", lease_json("new-1", 11))}, leases_stream_);
  loop_.run_ready();
  live(seconds(10));
  transport_.stream_lines({event("ADDED", object_json("new-1", 12))}, nodes_stream_);
  loop_.run_ready();
  live(seconds(5));
  EXPECT_TRUE(monitor_.observe("new-1", kWindow).has_lease);
  EXPECT_EQ(monitor_.observe("new-1", kWindow).silent_for, seconds(5));
}

TEST_F(NodeMonitorTest, ANodeIsMissingFromTheFirstLook) {
  watching();
  EXPECT_EQ(monitor_.observe("gone-1", kWindow).missing_for, seconds(0));
  live(seconds(30));
  EXPECT_EQ(monitor_.observe("gone-1", kWindow).missing_for, seconds(30));
  EXPECT_FALSE(monitor_.observe("gone-1", kWindow).silent_for) << "it is missing, not silent";
}

// ---- The silence of a Lease alone.

TEST_F(NodeMonitorTest, OnlyALeaseThatIsThereHasASilence) {
  watching();
  live(seconds(45));
  EXPECT_FALSE(monitor_.of_leases().silence(kNode, kWindow).silent_for);
  transport_.stream_lines({event("ADDED", lease_json(kNode, 9))}, leases_stream_);
  loop_.run_ready();
  live(seconds(45));
  EXPECT_EQ(monitor_.of_leases().silence(kNode, kWindow).silent_for, seconds(45));
  transport_.stream_lines({event("DELETED", lease_json(kNode, 10))}, leases_stream_);
  loop_.run_ready();
  EXPECT_FALSE(monitor_.of_leases().silence(kNode, kWindow).silent_for);
}

TEST_F(NodeMonitorTest, LeasesThatWereListedBeforeTheNodesCountOnlyIfTheirNodesAreThere) {
  monitor_.start();
  loop_.run_ready();
  const std::string end =
      R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6","annotations":)"
      R"({"k8s.io/initial-events-end":"true"}}}})";
  const bool nodes_first = transport_.stream(0).target.find("/nodes") != std::string::npos;
  std::vector<std::string> leases = {event("ADDED", lease_json(kNode, 5))};
  for (const char* const gone : {"gone-1", "gone-2", "gone-3", "gone-4"}) {
    leases.push_back(event("ADDED", lease_json(gone, 4)));
  }
  leases.push_back(end);
  const std::size_t of_leases = nodes_first ? 1 : 0;
  transport_.open_stream(of_leases);
  transport_.stream_lines(leases, of_leases);
  loop_.run_ready();
  transport_.open_stream(1 - of_leases);
  transport_.stream_lines({event("ADDED", object_json(kNode, 5)), end}, 1 - of_leases);
  loop_.run_ready();
  monitor_.proof();
  live(seconds(45));
  EXPECT_EQ(monitor_.of_leases().silence(kNode, kWindow).silent_for, seconds(45));
  EXPECT_FALSE(monitor_.of_leases().silence(kNode, kWindow).in_doubt);
}

TEST_F(NodeMonitorTest, ALiveLookThatShowsARenewalEndsTheSilence) {
  watching({event("ADDED", lease_json(kNode, 5))});
  live(seconds(45));
  bool ended = false;
  spawn(confirm(ended));
  loop_.run_ready();
  while (transport_.request().target.find("/leases/") == std::string::npos) {
    transport_.answer(200, node_is("True"));  // the condition of a node
    loop_.run_ready();
  }
  transport_.answer(200, lease_json(kNode, 9));
  loop_.run_ready();
  EXPECT_TRUE(ended);
  EXPECT_EQ(monitor_.of_leases().silence(kNode, kWindow).silent_for, seconds(0));
}

TEST_F(NodeMonitorTest, TheSilenceOfEveryNodeIsRecordedByOneShard) {
  WindowKeeper windows(loop_, Log());
  monitor_.of_leases().keep_every_window(windows, [](const std::string&) { return 3; });
  watching({event("ADDED", lease_json(kNode, 5))});
  live(seconds(20));
  EXPECT_EQ(windows.record(3), R"({"silent/virtual-1":["5",20]})");
  EXPECT_EQ(windows.record(2), "");
}

}  // namespace
}  // namespace holdfast::observe
