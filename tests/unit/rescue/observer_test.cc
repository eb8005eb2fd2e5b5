// What the observer writes down, and that it writes nothing else. The judgement is rescue_test.cc's.
#include "operator/rescue/observer.h"

#include "operator/observe/node_leases.h"
#include "tests/unit/kube/client_fixture.h"
#include "tests/unit/rescue/object_server.h"

namespace holdfast::rescue {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const std::string kLease =
    "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/holdfast-observer";
const std::string kConfigMap =
    "/api/v1/namespaces/holdfast-system/configmaps/holdfast-rescue-journal";
const std::vector<std::string> kNodes = {"node-1", "node-2", "node-3", "node-4", "node-5"};
constexpr Time kBegin{seconds(1'800'000'000)};

std::string path_of_node(const std::string& node) { return "/api/v1/nodes/" + node; }
std::string path_of_lease(const std::string& node) {
  return "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + node;
}

Json job_pod(const std::string& name, const std::string& node = "node-1") {
  return {{"metadata",
           {{"name", name},
            {"namespace", "media"},
            {"uid", "uid of " + name},
            {"creationTimestamp", format_time(kBegin - minutes(10))},
            {"labels", {{"batch.kubernetes.io/job-name", "night"}}},
            {"ownerReferences", Json::array({{{"apiVersion", "batch/v1"},
                                              {"kind", "Job"},
                                              {"name", "night"},
                                              {"uid", "job-1"},
                                              {"controller", true}}})}}},
          {"spec", {{"nodeName", node}}},
          {"status", {{"phase", "Running"}}}};
}

class ObserverTest : public kube::ClientTest {
 protected:
  ObserverTest() {
    transport_.date = kBegin;
    for (const std::string& node : kNodes) {
      server_.put(path_of_node(node), {{"metadata", {{"name", node}}}});
      server_.put(path_of_lease(node),
                  {{"metadata", {{"name", node}, {"namespace", "kube-node-lease"}}}});
    }
    taint("node-1", "node.kubernetes.io/unreachable");
  }
  void taint(const std::string& node, const char* key) {
    server_.objects[path_of_node(node)]["spec"]["taints"] =
        Json::array({{{"key", key}, {"effect", "NoSchedule"}}});
  }
  std::ptrdiff_t looks_at(const std::string& node) {
    return std::count_if(transport_.history.begin(), transport_.history.end(),
                         [&](const auto& sent) { return sent.target == path_of_node(node); });
  }
  void TearDown() override {
    observer_->stop([] {});
    server_.serve();
    ClientTest::TearDown();
    observer_.reset();
  }

  // Starts it with these pods.
  void observe(const std::vector<Json>& pods, int most_per_minute = 60) {
    most_per_minute_ = most_per_minute;
    begin();
    for (const Json& pod : pods) show("ADDED", pod);
    pass(seconds(1));
  }
  void begin() {
    observer_ = std::make_unique<Observer>(
        cache::Informer::Dependencies{loop_, client_, random_, Log()},
        Observer::Config{"holdfast-system", "me", {}, {}, {}, most_per_minute_});
    observer_->start();
    loop_.run_ready();
    ASSERT_EQ(transport_.streams(), 4u);
    for (std::size_t i = 0; i < transport_.streams(); ++i) {
      transport_.open_stream(i);
      const std::string& target = transport_.stream(i).target;
      const bool of_nodes = target.find("/nodes") != std::string::npos;
      const bool of_leases = target.find("/leases") != std::string::npos;
      for (const std::string& node : kNodes) {
        if (of_nodes) send(i, "ADDED", server_.objects.at(path_of_node(node)));
        if (of_leases) send(i, "ADDED", server_.objects.at(path_of_lease(node)));
      }
      if (of_leases) leases_ = i;
      if (!of_leases && !of_nodes) {
        (target.find("job-name") != std::string::npos ? job_pods_ : labelled_) = i;
      }
      send(i, "BOOKMARK",
           {{"metadata",
             {{"resourceVersion", std::to_string(server_.version())},
              {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}});
    }
    server_.serve();
  }
  void send(std::size_t stream, const std::string& type, const Json& object) {
    transport_.stream_lines({Json({{"type", type}, {"object", object}}).dump()}, stream);
  }
  void show(const std::string& type, Json pod) {
    pod["metadata"]["resourceVersion"] = std::to_string(server_.version());
    send(job_pods_, type, pod);
    loop_.run_ready();
  }
  void renew(const std::string& node) {
    server_.put(path_of_lease(node), server_.objects.at(path_of_lease(node)));
    send(leases_, "MODIFIED", server_.objects.at(path_of_lease(node)));
    loop_.run_ready();
  }
  // All nodes renew but those that are silent.
  void pass(Duration time) {
    for (Duration passed{0}; passed < time; passed += seconds(1)) {
      loop_.advance(seconds(1));
      transport_.date = *transport_.date + seconds(1);
      if (++beats_ % 10 == 0) {
        for (const std::string& node : kNodes) {
          if (!silent_.contains(node)) renew(node);
        }
      }
      server_.serve();
    }
  }
  Json entries() {
    const auto found = server_.objects.find(kConfigMap);
    if (found == server_.objects.end()) return Json::array();
    return *parse_json(string_at(found->second["data"], "journal.json"));
  }

  ObjectServer server_{loop_, transport_};
  std::unique_ptr<Observer> observer_;
  int most_per_minute_ = 60;
  int beats_ = 0;
  std::set<std::string> silent_ = {"node-1"};
  std::size_t job_pods_ = 0, labelled_ = 0, leases_ = 0;
};

TEST_F(ObserverTest, APodOnASilentNodeIsWrittenDownWhenItWouldBeFreed) {
  observe({job_pod("a"), job_pod("b", "node-2")});
  pass(seconds(58));
  EXPECT_TRUE(entries().empty());
  pass(seconds(5));
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries()[0]["pod"], "a");
  EXPECT_EQ(entries()[0]["controller"], "Job/night");
  const Time silent = *parse_time(string_at(entries()[0], "silentSince"));
  const Time due = *parse_time(string_at(entries()[0], "due"));
  EXPECT_GE(due - silent, seconds(60));
  EXPECT_LE(due - silent, seconds(62));
}

// As the controller waits, so that the next pod goes elsewhere.
TEST_F(ObserverTest, ItWaitsUntilKubernetesHasMarkedTheNodeAndLooksOnceASecond) {
  std::vector<Json> pods;
  for (int i = 0; i < 20; ++i) pods.push_back(job_pod("p-" + std::to_string(i), "node-2"));
  silent_ = {"node-2"};
  observe(pods);
  pass(seconds(64));
  EXPECT_TRUE(entries().empty());
  EXPECT_GE(looks_at("node-2"), 4);
  EXPECT_LE(looks_at("node-2"), 6) << "all of its pods together once a second";
  taint("node-2", "node.kubernetes.io/unreachable");
  pass(minutes(1));
  ASSERT_EQ(entries().size(), 20u);
  const Time due = *parse_time(string_at(entries()[0], "due"));
  EXPECT_LE(due - *parse_time(string_at(entries()[0], "silentSince")), seconds(67));
}

TEST_F(ObserverTest, ItWritesItsLeaseAndItsConfigMapAndNothingElse) {
  observe({job_pod("a")});
  pass(minutes(3));
  ASSERT_EQ(entries().size(), 1u);
  for (const auto& sent : transport_.history) {
    if (sent.method == "GET") continue;
    EXPECT_TRUE(sent.target.find("/namespaces/holdfast-system/") != std::string::npos)
        << sent.method << " " << sent.target;
  }
  EXPECT_TRUE(server_.objects.contains(kLease));
}

TEST_F(ObserverTest, ItSaysAtOnceThatItObserves) {
  observe({});
  pass(seconds(2));
  ASSERT_TRUE(server_.objects.contains(kConfigMap));
  const Json data = server_.objects.at(kConfigMap)["data"];
  EXPECT_LE(*parse_time(string_at(data, "observedSince")), kBegin + seconds(3));
}

TEST_F(ObserverTest, ItWritesTheConfigMapAtMostOnceAMinute) {
  observe({job_pod("a")});
  const auto writes = [this] {
    return std::count_if(
        transport_.history.begin(), transport_.history.end(), [](const auto& sent) {
          return sent.method != "GET" && sent.target.find("configmaps") != std::string::npos;
        });
  };
  pass(seconds(55));
  EXPECT_EQ(writes(), 1) << "that it observes";
  pass(seconds(10));
  EXPECT_EQ(writes(), 2);
  show("DELETED", job_pod("a"));
  pass(seconds(50));
  EXPECT_EQ(writes(), 2);
  EXPECT_FALSE(entries()[0].contains("ended"));
  pass(seconds(15));
  EXPECT_EQ(writes(), 3);
  EXPECT_TRUE(entries()[0].contains("ended"));
  pass(minutes(5));
  EXPECT_EQ(writes(), 3) << "nothing has changed";
}

TEST_F(ObserverTest, APodThatGoesOnWhenItsNodeIsBackMakesTheVerdictFalse) {
  observe({job_pod("a")});
  pass(seconds(65));
  renew("node-1");
  const Time back = *transport_.date;
  pass(minutes(3));
  ASSERT_TRUE(entries()[0].contains("returned"));
  EXPECT_LE(*parse_time(string_at(entries()[0], "returned")), back + seconds(1));
}

// A pod may end well while its node is cut off. Its status may come before the node's renewal.
TEST_F(ObserverTest, APodThatSucceededMakesTheVerdictFalse) {
  Json pod = job_pod("a");
  observe({pod});
  pass(seconds(65));
  pod["status"]["phase"] = "Succeeded";
  show("MODIFIED", pod);
  show("DELETED", pod);
  renew("node-1");
  pass(minutes(2));
  EXPECT_TRUE(entries()[0].contains("returned"));
  EXPECT_FALSE(entries()[0].contains("ended"));
}

// Its kubelet renews first, and then reports the pods that were lost with the node's memory.
TEST_F(ObserverTest, APodWhoseNodeWasStartedAnewDoesNotGoOn) {
  Json pod = job_pod("a");
  observe({pod});
  pass(seconds(65));
  renew("node-1");
  pass(seconds(20));
  pod["status"]["phase"] = "Failed";
  show("MODIFIED", pod);
  pass(minutes(2));
  EXPECT_TRUE(entries()[0].contains("ended"));
  EXPECT_FALSE(entries()[0].contains("returned"));
}

// On a node that is out of service Kubernetes frees them.
TEST_F(ObserverTest, PodsThatAreLookedAtInVainHideNoOthers) {
  std::vector<Json> pods;
  for (int i = 0; i < 40; ++i) pods.push_back(job_pod("stays-" + std::to_string(i)));
  pods.push_back(job_pod("z", "node-2"));
  taint("node-1", "node.kubernetes.io/out-of-service");
  observe(pods);
  silent_.insert("node-2");
  pass(seconds(90));
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries()[0]["pod"], "z");
  EXPECT_LE(looks_at("node-1"), 80) << "each twice at most";
}

TEST_F(ObserverTest, APodThatTheClusterDeletedMeanwhileDoesNotGoOn) {
  Json pod = job_pod("a");
  observe({pod});
  pass(seconds(65));
  pod["metadata"]["deletionTimestamp"] = format_time(*transport_.date);
  pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  show("MODIFIED", pod);
  renew("node-1");
  show("DELETED", pod);
  pass(minutes(2));
  EXPECT_TRUE(entries()[0].contains("ended"));
  EXPECT_FALSE(entries()[0].contains("returned"));
}

TEST_F(ObserverTest, APodThatLosesItsLabelHasNotEnded) {
  Json pod = job_pod("a");
  pod["metadata"]["labels"]["holdfast.dev/rescue"] = "true";
  observe({pod});
  pod["metadata"]["resourceVersion"] = std::to_string(server_.version());
  send(labelled_, "ADDED", pod);
  pass(seconds(65));
  ASSERT_EQ(entries().size(), 1u) << "once, though two watches show it";
  pod["metadata"]["resourceVersion"] = std::to_string(server_.version());
  send(labelled_, "DELETED", pod);
  pass(minutes(2));
  EXPECT_FALSE(entries()[0].contains("ended"));
}

TEST_F(ObserverTest, APodThatWouldStayIsWrittenDownWithTheReason) {
  Json pod = job_pod("a");
  pod["spec"]["volumes"] =
      Json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}});
  observe({pod});
  pass(seconds(65));
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries()[0]["stays"], "Volumes");
  pod["metadata"]["annotations"] = {{"holdfast.dev/rescueVolumes", "true"}};
  show("MODIFIED", pod);
  pass(seconds(65));
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_FALSE(entries()[0].contains("stays"));
}

TEST_F(ObserverTest, NoMoreAreDueInAMinuteThanWouldBeFreed) {
  observe({job_pod("a"), job_pod("b"), job_pod("c")}, 2);
  pass(seconds(65));
  EXPECT_EQ(entries().size(), 2u);
  pass(minutes(2));
  ASSERT_EQ(entries().size(), 3u);
  const Time first = *parse_time(string_at(entries()[0], "due"));
  EXPECT_GE(*parse_time(string_at(entries()[2], "due")) - first, minutes(1));
}

TEST_F(ObserverTest, WhileMostNodesAreSilentNothingIsDue) {
  observe({job_pod("a")});
  for (int i = 0; i < 200; ++i) {
    loop_.advance(seconds(1));
    transport_.date = *transport_.date + seconds(1);
    server_.serve();
  }
  EXPECT_TRUE(entries().empty());
}

TEST_F(ObserverTest, TheNextReplicaGoesOnWithWhatWasWrittenDown) {
  server_.put(kConfigMap,
              {{"metadata", {{"name", "holdfast-rescue-journal"}}},
               {"data",
                {{"journal.json", Json::array({{{"namespace", "media"},
                                                {"pod", "gone"},
                                                {"uid", "uid of gone"},
                                                {"node", "node-1"},
                                                {"controller", "Job/night"},
                                                {"silentSince", format_time(kBegin - minutes(9))},
                                                {"due", format_time(kBegin - minutes(8))}},
                                               {{"namespace", "media"},
                                                {"pod", "a"},
                                                {"uid", "uid of a"},
                                                {"node", "node-1"},
                                                {"controller", "Job/night"},
                                                {"silentSince", format_time(kBegin - minutes(9))},
                                                {"due", format_time(kBegin - minutes(8))}}})
                                      .dump()}}}});
  observe({job_pod("a")});
  pass(minutes(2));
  ASSERT_EQ(entries().size(), 2u) << "no pod is due twice";
  EXPECT_TRUE(entries()[0].contains("unseen"));
  EXPECT_FALSE(entries()[1].contains("unseen") || entries()[1].contains("ended"));
}

TEST_F(ObserverTest, WhoDeletesTheConfigMapBeginsAnew) {
  observe({job_pod("a")});
  pass(seconds(65));
  server_.objects.erase(kConfigMap);
  show("DELETED", job_pod("a"));
  pass(minutes(3));
  EXPECT_TRUE(entries().empty());
}

// What was due and is not written yet would be due later, if it were judged again.
TEST_F(ObserverTest, AnEditOfTheConfigMapLosesNothingThatIsNotWrittenYet) {
  Json later = job_pod("b");
  later["metadata"]["creationTimestamp"] = format_time(kBegin + seconds(20));
  observe({job_pod("a"), later});
  pass(seconds(65));
  ASSERT_EQ(entries().size(), 1u);
  server_.put(kConfigMap, server_.objects.at(kConfigMap));
  pass(minutes(3));
  ASSERT_EQ(entries().size(), 2u);
  EXPECT_LE(*parse_time(string_at(entries()[1], "due")), kBegin + seconds(82));
}

TEST_F(ObserverTest, WhileTheAPIServerRefusesTheConfigMapNothingIsLost) {
  observe({job_pod("a")});
  pass(seconds(30));
  server_.refuse_writes_of = "configmaps";
  pass(minutes(3));
  EXPECT_TRUE(entries().empty());
  server_.refuse_writes_of = "";
  pass(minutes(2));
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_LE(*parse_time(string_at(entries()[0], "due")), kBegin + seconds(63));
}

TEST_F(ObserverTest, AReplicaThatCouldNotRenewForAWhileLosesNothing) {
  observe({job_pod("a")});
  pass(seconds(30));
  server_.refuse_writes_of = "configmaps";
  pass(seconds(60));
  server_.refuse_with = 500;
  pass(seconds(30));
  ASSERT_FALSE(observer_->acting());
  server_.refuse_with = 0;
  server_.refuse_writes_of = "";
  pass(minutes(2));
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_LE(*parse_time(string_at(entries()[0], "due")), kBegin + seconds(63));
}

}  // namespace
}  // namespace holdfast::rescue
