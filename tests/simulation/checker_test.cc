// The checkers see what they are there to see: a rogue breaks each rule on purpose, in a world in
// which all else is well, and the run must end with that rule's name.
#include <gtest/gtest.h>

#include "operator/membership/lease_codec.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/simulation/run.h"
#include "tests/support/run_of.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kJob = "victim";
const std::string kNamespace = kNamespaces[0];

// Stands in for the replica that works on the job and has lost its mind.
class Rogue {
 public:
  explicit Rogue(World& world) : world_(world) { delivery_.replica = owner(); }

  Json job() const { return *world_.server().find("durablejobs", kNamespace, kJob); }
  std::string job_uid() const { return uid_of(job()); }
  Json pod() const {
    const Json job = this->job();
    return *world_.server().find("pods", kNamespace, string_at(run_of(job["status"]), "podName"));
  }

  // As if the server had taken it.
  void applied(const char* resource, const Json* before, const Json* after,
               const std::string& body = "") {
    delivery_.request.body = body;
    Applied write;
    write.request = &delivery_.request;
    write.resource = resource;
    write.before = before;
    write.after = after;
    world_.ledger().arrives(delivery_);
    world_.ledger().applied(write);
    world_.ledger().handled(delivery_, {});
  }
  void status(const std::function<void(Json& status)>& change) {
    const Json before = job();
    Json after = before;
    change(after["status"]);
    applied("durablejobs", &before, &after);
  }
  void sends(const std::string& method, const std::string& target, const Json& body) {
    delivery_.request.method = method;
    delivery_.request.target = target;
    delivery_.request.body = body.dump();
    delivery_.life = 1;
    world_.ledger().sent(delivery_);
  }
  World& world() { return world_; }
  Delivery& delivery() { return delivery_; }

 private:
  int owner() const {
    const auto lease = [this](int shard) {
      return *world_.server().find("leases", "holdfast-system",
                                   membership::shard_lease_name(shard));
    };
    const int shards =
        std::stoi(string_at(lease(0)["metadata"]["annotations"], "holdfast.dev/shards"));
    const Json ours = lease(reconciler::shard_of(job_uid(), shards));
    return world_.ledger().life_of(string_at(ours["spec"], "holderIdentity")).value().first;
  }

  World& world_;
  Delivery delivery_;
};

// What becomes of a world in which `act` happens while the victim's first attempt runs. `more` is
// added to the victim's spec.
std::string violation_after(std::function<void(Rogue&)> act, const Json& more = Json::object()) {
  RunRequest run = run_request(11, "calm", minutes(2));
  run.sabotage = [act = std::move(act), more](World& world) {
    world.cluster().work_of = [](const std::string& pod) -> std::optional<Cluster::Work> {
      if (pod.rfind(kJob, 0) != 0) return std::nullopt;
      return Cluster::Work{minutes(30), 0, 143, seconds(1)};
    };
    world.scheduler().at(seconds(5), [&world, more] {
      Json spec = lasting_spec(4);
      spec["startDeadlineSeconds"] = 120;
      spec.update(more);
      EXPECT_TRUE(world.users().create(kNamespace, kJob, spec));
    });
    world.scheduler().at(seconds(30), [&world, act] {
      Rogue rogue(world);
      ASSERT_EQ(string_at(rogue.job()["status"], "phase"), "Running");
      act(rogue);
    });
  };
  return run_seed(run).violation;
}

void expect_broken(const std::string& rule, std::function<void(Rogue&)> act,
                   const Json& more = Json::object()) {
  EXPECT_EQ(rule_of(violation_after(std::move(act), more)), rule);
}

const Json kThreeRuns = {{"completions", 3}, {"parallelism", 1}, {"completionMode", "Indexed"}};

Json ended(Json status, const char* phase, const char* outcome) {
  status["phase"] = phase;
  status["completionTime"] = "2026-03-01T00:00:30Z";
  status.erase("waiting");
  status["history"] = Json::array({{{"attempt", status["attempt"]},
                                    {"podName", run_of(status)["podName"]},
                                    {"outcome", outcome},
                                    {"reason", "Rogue"}}});
  status.erase("runs");
  return status;
}

TEST(Checker, AWorldWithoutARogueIsWell) {
  EXPECT_EQ(violation_after([](Rogue&) {}), "");
}

TEST(Checker, SeesS1) {
  expect_broken("S1", [](Rogue& rogue) {
    Json before = rogue.job();
    before["status"] = ended(before["status"], "Succeeded", "Succeeded");
    Json after = before;
    after["status"]["failures"] = 1;
    rogue.applied("durablejobs", &before, &after);
  });
}

TEST(Checker, SeesS2OfASuccessThatNoPodReported) {
  expect_broken("S2 FencedOutcome", [](Rogue& rogue) {
    rogue.status([](Json& status) { status = ended(status, "Succeeded", "Succeeded"); });
  });
}

TEST(Checker, SeesS18OfAnOutcomeOfAPodThatAUserMade) {
  expect_broken("S18 Author", [](Rogue& rogue) {
    rogue.status([](Json& status) {
      status = ended(status, "Failed", "Cancelled");
      status["history"][0]["podUID"] = "forged";
    });
  });
}

TEST(Checker, SeesS2OfAPodThatIsStoppedWhileItsAttemptCounts) {
  expect_broken("S2 FencedOutcome", [](Rogue& rogue) {
    const Json before = rogue.pod();
    Json after = before;
    after["metadata"]["deletionTimestamp"] = "2026-03-01T00:01:00Z";
    rogue.applied("pods", &before, &after);
  });
}

TEST(Checker, SeesS3) {
  expect_broken("S3",
                [](Rogue& rogue) { rogue.status([](Json& status) { status["attempt"] = 0; }); });
}

TEST(Checker, SeesS3OfAnAttemptThatIsSkippedWithoutAnAdmission) {
  expect_broken("S3 Fence", [](Rogue& rogue) {
    Json before = rogue.job();
    before["status"]["phase"] = "Suspended";
    before["status"].erase("runs");
    Json after = before;
    after["status"]["attempt"] = 2;
    rogue.applied("durablejobs", &before, &after);
  });
}

TEST(Checker, SeesS4) {
  expect_broken("S4",
                [](Rogue& rogue) { rogue.status([](Json& s) { s["phase"] = "Cancelled"; }); });
}

TEST(Checker, SeesS5) {
  expect_broken("S5 NoLoss", [](Rogue& rogue) {
    const Json before = rogue.job();
    rogue.applied("durablejobs", &before, nullptr);
  });
}

TEST(Checker, SeesS6) {
  expect_broken("S6 OnePod", [](Rogue& rogue) {
    Json pod = rogue.pod();
    pod["metadata"]["uid"] = "another";
    rogue.delivery().sent = rogue.world().scheduler().now();
    rogue.applied("pods", nullptr, &pod, pod.dump());
  });
}

TEST(Checker, SeesS7) {
  const std::string target = job_target(kNamespace, kJob) + "/status";
  expect_broken("S7 Precondition", [&](Rogue& rogue) {
    rogue.sends("PUT", target, {{"metadata", {{"uid", rogue.job_uid()}}}});
  });
  expect_broken("S7 Precondition", [&](Rogue& rogue) {
    rogue.sends("DELETE", pod_target(kNamespace, "any"),
                {{"preconditions", {{"uid", uid_of(rogue.pod())}}}});
  });
  expect_broken("S7 Precondition", [&](Rogue& rogue) {
    rogue.sends("PUT", queue_target(kNamespace, "any") + "/status",
                {{"metadata", {{"uid", "any"}}}});
  });
}

TEST(Checker, SeesS8OfALossThatIsNotCounted) {
  expect_broken("S8 Budget", [](Rogue& rogue) {
    rogue.status([](Json& status) { status = ended(status, "Failed", "Lost"); });
  });
}

TEST(Checker, SeesS8OfAPodBeforeItsAttempt) {
  expect_broken("S8 Budget", [](Rogue& rogue) {
    Json pod = rogue.pod();
    pod["metadata"]["uid"] = "another";
    pod["metadata"]["name"] = reconciler::pod_name(kJob, rogue.job_uid(), 9);
    pod["metadata"]["labels"][reconciler::kAttemptLabel] = "9";
    rogue.applied("pods", nullptr, &pod, pod.dump());
  });
}

TEST(Checker, SeesAStartTimeoutBeforeItsTime) {
  const std::string violation = violation_after([](Rogue& rogue) {
    rogue.delivery().sent = rogue.world().scheduler().now();
    rogue.status([](Json& status) {
      status = ended(status, "Failed", "StartTimeout");
      status["disruptions"] = 1;
    });
  });
  EXPECT_EQ(violation, "an attempt is ended as StartTimeout before its time: victim");
}

TEST(Checker, SeesAStatusWriteThatLeavesLabelsOut) {
  const std::string violation = violation_after([](Rogue& rogue) {
    const Json before = rogue.job();
    Json after = before;
    after["status"]["waiting"]["message"] = "new words";
    Json body = before;
    body["metadata"].erase("labels");
    rogue.applied("durablejobs", &before, &after, body.dump());
  });
  EXPECT_EQ(violation, "a status write leaves out the labels of victim");
}

TEST(Checker, SeesS9) {
  expect_broken("S9 Idempotence", [](Rogue& rogue) {
    Delivery delivery;
    delivery.replica = 0;
    delivery.number = 1'000'000;
    delivery.twice = true;
    delivery.request = {"holdfast-0", "POST", "/api/v1/namespaces", "application/json",
                        R"({"metadata": {"generateName": "rogue-"}})"};
    rogue.world().gateway().arrive(delivery, [](auto) {});
    delivery.copy = 1;
    rogue.world().gateway().arrive(delivery, [](auto) {});
  });
}

TEST(Checker, SeesS10) {
  expect_broken("S10 Isolation", [](Rogue& rogue) {
    Json job = rogue.job();
    job["metadata"]["uid"] = "another";
    rogue.applied("durablejobs", nullptr, &job);
  });
}

TEST(Checker, SeesS11) {
  expect_broken("S11 NoTimeTravel", [](Rogue& rogue) {
    rogue.delivery().life = 1;
    rogue.delivery().request.method = "PUT";
    rogue.delivery().request.target = job_target(kNamespace, kJob) + "/status";
    rogue.world().ledger().answered(rogue.delivery(), {200, rogue.job().dump()});
    rogue.sends("PUT", job_target(kNamespace, kJob) + "/status",
                {{"metadata", {{"uid", rogue.job_uid()}, {"resourceVersion", "3"}}}});
  });
}

TEST(Checker, SeesS12) {
  expect_broken("S12 CancelSticks", [](Rogue& rogue) {
    Json before = rogue.job();
    before["spec"]["cancel"] = true;
    before["status"]["phase"] = "Backoff";
    before["status"]["runs"][0]["nextAttemptTime"] = "2026-03-01T00:01:00Z";
    Json after = before;
    after["status"]["phase"] = "Running";
    after["status"]["attempt"] = 2;
    after["status"]["runs"] =
        Json::array({{{"index", 0},
                      {"attempt", 2},
                      {"podName", reconciler::pod_name(kJob, rogue.job_uid(), 2)}}});
    rogue.applied("durablejobs", &before, &after);
  });
}

// After a pod as the operator asks for it, but for what `change` does.
std::string violation_of_pod(const std::function<void(Json& spec)>& change) {
  return violation_after([&](Rogue& rogue) {
    Json pod = rogue.pod();
    pod["metadata"]["uid"] = "another";
    pod["spec"].erase("nodeName");
    change(pod["spec"]);
    rogue.delivery().sent = Duration(-1);  // before the first one went
    rogue.applied("pods", nullptr, &pod, pod.dump());
  });
}

void expect_pod_refused(const std::function<void(Json& spec)>& change) {
  EXPECT_EQ(rule_of(violation_of_pod(change)), "S13 Tenancy");
}

TEST(Checker, SeesNothingOfS13InAPodOfItsTemplate) {
  EXPECT_EQ(violation_of_pod([](Json&) {}).find("S13"), std::string::npos);
}

TEST(Checker, SeesS13) {
  expect_pod_refused([](Json& spec) { spec["hostNetwork"] = true; });
}

TEST(Checker, SeesS13InAWishAgainstANodeOfNoLostAttempt) {
  expect_pod_refused([](Json& spec) {
    spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
        Json::parse(R"([{"weight": 1, "preference": {"matchFields": [
            {"key": "metadata.name", "operator": "NotIn", "values": ["node-0"]}]}}])");
  });
}

TEST(Checker, SeesS14) {
  expect_broken("S14 SelfFence", [](Rogue& rogue) {
    rogue.delivery().replica = 0;
    rogue.delivery().life = 99;  // one that never renewed
    Delivery sent = rogue.delivery();
    sent.request = {"holdfast-0", "POST", "/api/v1/namespaces/team-a/pods", "application/json",
                    rogue.pod().dump()};
    rogue.world().ledger().sent(sent);
  });
}

TEST(Checker, SeesS15) {
  expect_broken("S15 Exclusion", [](Rogue& rogue) {
    // Another member's name stands in every shard's Lease.
    for (int shard = 0; shard < 32; ++shard) {
      rogue.world().gateway().ask("rogue", "PATCH",
                                  "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/"
                                  "holdfast-shard-" +
                                      std::to_string(shard),
                                  {{"spec", {{"holderIdentity", "rogue"}}}},
                                  "application/merge-patch+json");
    }
    rogue.sends("POST", "/api/v1/namespaces/team-a/pods", rogue.pod());
  });
}

// The shard of a queue is its namespace's, and so is that of its jobs.
TEST(Checker, SeesS15OfAQueue) {
  for (const char* const kind : {"jobqueues", "pods"}) {
    const std::string violation = violation_after([&](Rogue& rogue) {
      Users& users = rogue.world().users();
      ASSERT_TRUE(users.create_queue(kNamespace, "q", {{"hold", true}}));
      Json spec = lasting_spec(4);
      spec["queue"] = {{"name", "q"}};
      ASSERT_TRUE(users.create(kNamespace, "queued", spec));
      const Json job = *rogue.world().server().find("durablejobs", kNamespace, "queued");
      // Nobody's, from now on.
      rogue.world().ledger().shards(1024);
      Json body = *rogue.world().server().find("jobqueues", kNamespace, "q");
      if (std::string(kind) == "pods") body = rogue.pod();
      body["metadata"]["ownerReferences"] =
          Json::array({{{"uid", uid_of(job)}, {"controller", true}}});
      const std::string target = kind == std::string("pods")
                                     ? "/api/v1/namespaces/team-a/pods"
                                     : queue_target(kNamespace, "q") + "/status";
      rogue.sends(kind == std::string("pods") ? "POST" : "PUT", target, body);
    });
    const std::string shard = membership::shard_lease_name(reconciler::shard_of(kNamespace, 1024));
    EXPECT_EQ(rule_of(violation), "S15 Exclusion") << kind;
    EXPECT_NE(violation.find(shard + " is held by ''"), std::string::npos) << violation;
  }
}

Json failed_for_its_time() {
  return Json::array(
      {{{"type", "FailureTarget"}, {"status", "True"}, {"reason", "DeadlineExceeded"}}});
}

TEST(Checker, SeesASuccessThatDoesNotCountBecauseItIsReadLate) {
  const auto late = [](Rogue& rogue) {
    const Json before = rogue.job();
    Json after = before;
    Json pod = rogue.pod();
    const Json was = pod;
    pod["status"]["phase"] = "Succeeded";
    rogue.applied("pods", &was, &pod);
    after["status"] = ended(before["status"], "Failed", "Succeeded");
    after["status"]["succeeded"] = 1;
    after["status"]["conditions"] = failed_for_its_time();
    rogue.applied("durablejobs", &before, &after);
  };
  expect_broken("a success counts, however late it is read", late);
}

TEST(Checker, SeesATimeThatIsOverBeforeItIs) {
  const auto early = [](Rogue& rogue) {
    const Json before = rogue.job();
    Json after = before;
    after["status"] = ended(before["status"], "Failed", "Cancelled");
    after["status"]["history"][0]["reason"] = "RunsStopped";
    after["status"]["conditions"] = failed_for_its_time();
    rogue.applied("durablejobs", &before, &after);
  };
  expect_broken("a job's time is over before it is", early, {{"activeDeadlineSeconds", 90}});
}

// The job's time is over, and the pod of its one open run, made by the operator, has a gate.
// `more` changes the status before that.
void runs_out_while_gated(Rogue& rogue, const std::function<void(Json& status)>& more) {
  const Json pod = rogue.pod();
  Json gated = pod;
  gated["spec"]["schedulingGates"] = Json::array({{{"name", "example.com/quota"}}});
  Applied write;  // not by a replica
  write.resource = "pods";
  write.before = &pod;
  write.after = &gated;
  rogue.world().ledger().applied(write);
  Json before = rogue.job();
  more(before["status"]);
  Json after = before;
  after["status"] = ended(before["status"], "Failed", "Cancelled");
  after["status"]["history"][0]["reason"] = "RunsStopped";
  after["status"]["conditions"] = failed_for_its_time();
  rogue.applied("durablejobs", &before, &after);
}

TEST(Checker, SeesATimeThatRunsOutWhileAllPodsAreGated) {
  const std::string violation =
      violation_after([](Rogue& rogue) { runs_out_while_gated(rogue, [](Json&) {}); });
  EXPECT_EQ(rule_of(violation), "a job's time runs out while its pod is gated");
}

TEST(Checker, ATimeMayRunOutWhileTheApiServerRefusesAPodOfTheJob) {
  const std::string violation = violation_after(
      [](Rogue& rogue) {
        runs_out_while_gated(rogue, [](Json& status) {
          Json refused = run_of(status);
          refused["index"] = 1;
          refused["attempt"] = 2;
          refused["podName"] = "victim-2-refused";
          refused.erase("podUID");
          status["attempt"] = 2;
          status["runs"].push_back(refused);
        });
      },
      kThreeRuns);
  EXPECT_NE(rule_of(violation), "a job's time runs out while its pod is gated");
}

TEST(Checker, SeesATimeThatRunsOutInAQueue) {
  const std::string violation = violation_after([](Rogue& rogue) {
    Json before = rogue.job();
    Json& status = before["status"];
    status["phase"] = "Backoff";
    status["waiting"]["reason"] = "Queued";
    status["runs"][0]["nextAttemptTime"] = "2026-03-01T00:00:10Z";
    Json after = before;
    after["status"] = ended(status, "Failed", "Failed");
    after["status"]["history"] = at(status, "history");
    after["status"]["conditions"] =
        Json::array({{{"type", "Failed"}, {"status", "True"}, {"reason", "DeadlineExceeded"}}});
    rogue.applied("durablejobs", &before, &after);
  });
  EXPECT_EQ(rule_of(violation), "a job's time runs out while it waits in its queue");
}

TEST(Checker, SeesS16OfAnIndexThatWasNotRun) {
  expect_broken(
      "S16 RunOnce",
      [](Rogue& rogue) { rogue.status([](Json& status) { status["completedIndexes"] = "2"; }); },
      kThreeRuns);
}

TEST(Checker, SeesS16OfACompletedIndexThatGoesOn) {
  expect_broken(
      "S16 RunOnce",
      [](Rogue& rogue) {
        Json before = rogue.job();
        Json pod = rogue.pod();
        const Json was = pod;
        pod["status"]["phase"] = "Succeeded";
        rogue.applied("pods", &was, &pod);
        rogue.status([](Json& status) { status["completedIndexes"] = "0"; });
      },
      kThreeRuns);
}

TEST(Checker, SeesS17) {
  expect_broken(
      "S17 Parallelism",
      [](Rogue& rogue) {
        rogue.status([&](Json& status) {
          status["attempt"] = 2;
          Json second = run_of(status);
          second["index"] = 1;
          second["attempt"] = 2;
          second["podName"] = reconciler::pod_name(kJob, rogue.job_uid(), 2);
          status["runs"].push_back(second);
        });
      },
      kThreeRuns);
}

TEST(Checker, SeesAFalseLoss) {
  expect_broken("an attempt is falsely lost", [](Rogue& rogue) {
    rogue.status([&](Json& status) {
      status["history"] = Json::array({{{"attempt", 1},
                                        {"podName", run_of(status)["podName"]},
                                        {"nodeName", run_of(status)["nodeName"]},
                                        {"outcome", "Lost"},
                                        {"reason", "NodeSilent"}}});
      status["phase"] = "Backoff";
      status["disruptions"] = 1;
      status["runs"][0]["nextAttemptTime"] = "2026-03-01T00:01:00Z";
    });
  });
}

TEST(Checker, SeesThatNothingHappensInTime) {
  RunRequest run = run_request(11, "calm", minutes(2));
  run.sabotage = [](World& world) {
    // Long after the faults have stopped: nobody can reach the API server.
    world.scheduler().at(minutes(5), [&world] {
      for (int i = 0; i < 3; ++i) world.network().cut(i, Network::Cut::kRefused);
      world.network().break_watches(-1);
    });
  };
  EXPECT_EQ(rule_of(run_seed(run).violation), "L1");
}

// The queue's owner cannot write its status.
TEST(Checker, SeesAPermitThatIsFreeWhileAJobWaits) {
  RunRequest run = run_request(11, "calm", minutes(2));
  run.sabotage = [](World& world) {
    world.scheduler().at(minutes(5), [&world] {
      world.network().refuses = [](const Delivery& delivery) {
        return delivery.request.method == "PUT" &&
               delivery.request.target.find("/jobqueues/") != std::string::npos;
      };
      Json spec = lasting_spec(4);
      spec["queue"] = {{"name", "q"}};
      EXPECT_TRUE(world.users().create_queue(kNamespace, "q", {{"concurrency", 1}}));
      EXPECT_TRUE(world.users().create(kNamespace, "queued", spec));
    });
  };
  const std::string violation = run_seed(run).violation;
  EXPECT_NE(violation.find("queued#0 has been in trouble (a permit is free, and a job waits)"),
            std::string::npos)
      << violation;
}

// It says that the job waits, and says so for ever.
TEST(Checker, SeesAQueueWhoseStatusIsOld) {
  RunRequest run = run_request(11, "calm", minutes(2));
  run.sabotage = [](World& world) {
    world.scheduler().at(minutes(5), [&world] {
      Json spec = lasting_spec(4);
      spec["queue"] = {{"name", "q"}};
      EXPECT_TRUE(world.users().create_queue(kNamespace, "q", {{"hold", true}}));
      EXPECT_TRUE(world.users().create(kNamespace, "queued", spec));
    });
    world.scheduler().at(minutes(6), [&world] {
      world.network().refuses = [](const Delivery& delivery) {
        return delivery.request.target.find("/jobqueues/") != std::string::npos;
      };
      world.users().patch(kNamespace, "queued", {{"cancel", true}});
    });
  };
  const std::string violation = run_seed(run).violation;
  EXPECT_NE(violation.find("what its queue's status says is old"), std::string::npos) << violation;
}

TEST(Checker, SeesWritesAtRest) {
  RunRequest run = run_request(11, "calm", minutes(2));
  run.sabotage = [](World& world) {
    for (int i = 1; i < 200; ++i) {
      world.scheduler().at(seconds(30 * i), [&world, i] {
        Delivery delivery;
        delivery.replica = 0;
        delivery.request = {"holdfast-0", "PATCH", "/api/v1/nodes/node-0",
                            "application/merge-patch+json",
                            Json{{"metadata", {{"labels", {{"at", std::to_string(i)}}}}}}.dump()};
        world.gateway().arrive(delivery, [](auto) {});
      });
    }
  };
  EXPECT_EQ(rule_of(run_seed(run).violation), "L6");
}

TEST(Checker, SeesASilentWatchThatIsNotReplaced) {
  Scheduler scheduler;
  ApiServer server([&] { return Gateway::beginning() + scheduler.now(); }, 1);
  Gateway gateway(scheduler, server, 1);
  Strikes strikes{Selection()};
  Network network(scheduler, gateway, strikes, 1);
  SimLoop loop(scheduler, {}, [] {});
  SimTransport transport(network, loop, 0, 1);
  http::StreamRequest patient;
  patient.target = "/api/v1/pods?watch=1&timeoutSeconds=600";
  patient.idle_timeout = std::chrono::hours(9);
  patient.decode = [](std::string_view) { return std::any(); };
  transport.open(patient, {[](const auto&) {}, [](auto&&) {}, [](auto) {}});
  scheduler.run_until(seconds(5));
  EXPECT_EQ(network.silence_watches(0), 1);
  scheduler.run_until(minutes(10));
  EXPECT_TRUE(network.silent_for_too_long().empty());
  scheduler.run_until(minutes(13));
  EXPECT_EQ(network.silent_for_too_long().size(), 1u);
  transport.die();
  loop.run_posted();
}

}  // namespace
}  // namespace holdfast::simulation
