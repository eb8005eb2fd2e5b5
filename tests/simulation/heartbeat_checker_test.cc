// The bounds of jobs with a heartbeat can be broken: somebody hides the trouble of one job from the
// operator, long after all faults, and the run must end with that trouble's name.
#include <gtest/gtest.h>

#include "core/agent_protocol.h"
#include "reconciler/names.h"
#include "tests/simulation/run.h"
#include "tests/support/run_of.h"

namespace holdfast::simulation {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kJob = "victim";
const std::string kNamespace = kNamespaces[0];
// The faults, of which there are none, stop after two minutes, and the bounds hold from then on.
constexpr seconds kCreated{125};

// Whoever hides it.
class Liar {
 public:
  explicit Liar(World& world) : world_(world) {}

  void change_lease(const Json& change) { patch(lease_target(), change); }
  void delete_lease() { world_.gateway().ask("liar", "DELETE", lease_target()); }
  void change_pod_status(const Json& status) {
    const std::string pod = string_at(run_of(job()["status"]), "podName");
    patch(pod_target(kNamespace, pod) + "/status", {{"status", status}});
  }
  // As an agent whose worker has just made progress.
  void renew() {
    const Json progress = {{"annotations", {{kProgressAnnotation, anything()}}}};
    change_lease({{"metadata", progress}, {"spec", {{"renewTime", now()}}}});
  }
  // Another text each time.
  std::string anything() { return "lie-" + std::to_string(++count_); }
  std::string now() const {
    const std::string text = format_time_nanos(world_.gateway().wall_clock());
    return text.substr(0, text.size() - 4) + "Z";
  }
  World& world() { return world_; }

 private:
  Json job() const { return *world_.server().find("durablejobs", kNamespace, kJob); }
  std::string lease_target() const {
    return "/apis/coordination.k8s.io/v1/namespaces/" + kNamespace + "/leases/" +
           reconciler::heartbeat_lease_name(uid_of(job()));
  }
  void patch(const std::string& target, const Json& change) {
    world_.gateway().ask("liar", "PATCH", target, change, "application/merge-patch+json");
  }

  World& world_;
  int count_ = 0;
};

// `begin` makes the trouble before the job exists, and then `lie` hides it every other second.
std::string violation_with(const std::function<void(World&)>& begin,
                           const std::function<void(Liar&)>& lie) {
  RunRequest run = run_request(11, "calm", minutes(2));
  run.stop_at = minutes(12);
  run.sabotage = [&](World& world) {
    world.cluster().work_of = [](const std::string& pod) -> std::optional<Cluster::Work> {
      if (pod.rfind(kJob, 0) != 0) return std::nullopt;
      return Cluster::Work{minutes(60), 0, 143, seconds(1)};
    };
    world.scheduler().at(kCreated, [&world, &begin] {
      begin(world);
      const Json container = {{"name", "main"}, {"image", "worker"}, {"command", {"/work"}}};
      const Json heartbeat = {{"leaseDurationSeconds", 15}, {"progressDeadlineSeconds", 30}};
      const Json pod = {{"containers", Json::array({container})}, {"restartPolicy", "Never"}};
      EXPECT_TRUE(world.users().create(
          kNamespace, kJob,
          {{"template", {{"spec", pod}}}, {"heartbeat", heartbeat}, {"startDeadlineSeconds", 30}}));
    });
    const auto liar = std::make_shared<Liar>(world);
    for (int i = 1; i < 300; ++i) {
      world.scheduler().at(kCreated + seconds(2 * i), [liar, &lie] { lie(*liar); });
    }
  };
  return run_seed(run).violation;
}

bool reports(const std::string& violation, const std::string& trouble) {
  return violation.find(std::string("L1: team-a/") + kJob + "#") == 0 &&
         violation.find("(" + trouble + ")") != std::string::npos;
}

void nothing(World&) {}

TEST(HeartbeatChecker, AJobThatNobodyLiesAboutIsWell) {
  EXPECT_EQ(violation_with(nothing, [](Liar&) {}), "");
}

TEST(HeartbeatChecker, SeesAnAgentWhoseSilenceIsNotFound) {
  const std::string violation = violation_with(
      [](World& world) { world.cluster().falling_silent(1000); }, [](Liar& liar) { liar.renew(); });
  EXPECT_TRUE(reports(violation, "its agent is silent")) << violation;
}

TEST(HeartbeatChecker, SeesAWorkerThatHangsAndIsNotFound) {
  const std::string violation = violation_with([](World& world) { world.cluster().hanging(1000); },
                                               [](Liar& liar) { liar.renew(); });
  EXPECT_TRUE(reports(violation, "its worker hangs")) << violation;
}

TEST(HeartbeatChecker, SeesANextContainerThatIsWaitedForForEver) {
  Json ended = Json::array();
  const std::string violation =
      violation_with([](World& world) { world.cluster().next_image_errors(true); },
                     [&ended](Liar& liar) {
                       ended.push_back({{"name", liar.anything()},
                                        {"image", "x"},
                                        {"imageID", ""},
                                        {"state", {{"terminated", {{"exitCode", 0}}}}}});
                       liar.change_pod_status({{"initContainerStatuses", ended}});
                       // Nor is its agent late.
                       liar.change_lease({{"spec", {{"acquireTime", liar.now()}}}});
                     });
  EXPECT_TRUE(reports(violation, "its next container does not start")) << violation;
}

TEST(HeartbeatChecker, SeesALeaseThatIsNeverGranted) {
  const std::string violation = violation_with(nothing, [](Liar& liar) { liar.delete_lease(); });
  EXPECT_TRUE(reports(violation, "its Lease is not granted")) << violation;
}

TEST(HeartbeatChecker, SeesAnAgentThatNeverRenewsAndIsWaitedForForEver) {
  const std::string violation = violation_with(
      [](World& world) {
        world.cluster().is_mute = [](const std::string& pod) { return pod.rfind(kJob, 0) == 0; };
      },
      [](Liar& liar) {
        liar.change_lease({{"spec", {{"acquireTime", liar.now()}}}});
      });
  EXPECT_TRUE(reports(violation, "its agent never renews")) << violation;
}

// What the safety rules say of a loss that was none, in a world whose agents and workers are well.
TEST(HeartbeatChecker, SeesAFalseLossOfAnAgentAndAFalselyHungWorker) {
  struct FalseLoss {
    const char* reason;
    const char* outcome;
    const char* rule;
  };
  for (const FalseLoss& one :
       {FalseLoss{"HolderSilent", "Lost", "an attempt is falsely lost"},
        FalseLoss{"NoProgress", "Hung", "an attempt is falsely called hung"}}) {
    const char* const reason = one.reason;
    const char* const outcome = one.outcome;
    const char* const rule = one.rule;
    bool done = false;
    const std::string violation = violation_with(nothing, [&](Liar& liar) {
      const Json* const job = liar.world().server().find("durablejobs", kNamespace, kJob);
      if (done || !job || liar.world().scheduler().now() < minutes(4)) return;
      done = true;
      Json after = *job;
      Json& status = after["status"];
      Json entry = run_of(status);
      status["history"] = Json::array({{{"attempt", 1},
                                        {"podName", entry["podName"]},
                                        {"podUID", entry["podUID"]},
                                        {"nodeName", entry["nodeName"]},
                                        {"outcome", outcome},
                                        {"reason", reason}}});
      status["phase"] = "Backoff";
      status["runs"][0]["nextAttemptTime"] = "2026-03-01T00:05:00Z";
      status[outcome == std::string("Lost") ? "disruptions" : "failures"] = 1;
      Delivery delivery;
      delivery.replica = 0;
      delivery.life = 1;
      delivery.sent = liar.world().scheduler().now();
      delivery.request.body = after.dump();
      Applied write;
      write.request = &delivery.request;
      write.resource = "durablejobs";
      write.before = job;
      write.after = &after;
      liar.world().ledger().arrives(delivery);
      liar.world().ledger().applied(write);
      liar.world().ledger().handled(delivery, {});
    });
    EXPECT_TRUE(done);
    EXPECT_EQ(rule_of(violation), rule);
  }
}

}  // namespace
}  // namespace holdfast::simulation
