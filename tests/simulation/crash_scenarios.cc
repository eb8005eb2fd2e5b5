#include "tests/simulation/crash_scenarios.h"

#include <utility>

#include "tests/simulation/crash_trial.h"
#include "tests/support/run_of.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Work = Cluster::Work;
using Step = Scenario::Step;

constexpr milliseconds kSoon{300};
constexpr milliseconds kAtOnce{0};

constexpr seconds kLeaseDuration{10};  // the least that the schema allows

const Work kShort{milliseconds(300)};
const Work kFails{milliseconds(300), 1};
const Work kEndless{seconds(1000)};
const Work kLong{seconds(60)};  // no mishap holds the operator up for longer

const std::string kGate = std::string(kGatePrefix) + "40";

Work lasting(Duration lasts) { return Work{lasts}; }

auto when_phase(std::string phase) {
  return [phase = std::move(phase)](Trial& trial) { return trial.phase() == phase; };
}

auto when_ended(std::string outcome) {
  return [outcome = std::move(outcome)](Trial& trial) { return trial.ended_with(outcome) > 0; };
}

bool when_pod_runs(Trial& trial) { return trial.pod_runs(); }
bool when_pod_is_on_record(Trial& trial) {
  return trial.pod_runs() && !string_at(run_of(trial.status()), "podUID").empty();
}
bool when_worker_runs(Trial& trial) { return trial.worker_runs(); }
bool at_the_start(Trial&) { return true; }
bool when_refused(Trial& trial) {
  const std::string reason = string_at(at(trial.status(), "waiting"), "reason");
  return reason == "PodCreationRefused" || reason == "PodTemplateRefused";
}

auto set(const char* field, bool value) {
  return [field, value](Trial& trial) { trial.patch({{field, value}}); };
}

const auto kCancel = set("cancel", true);
const auto kSuspend = set("suspend", true);
const auto kResume = set("suspend", false);
void power_off(Trial& trial) { trial.power_off(); }
void bring_back(Trial& trial) { trial.bring_back(); }

Scenario named(const char* name, std::vector<Work> works, std::string phase,
               std::vector<std::string> outcomes) {
  Scenario scenario;
  scenario.name = name;
  scenario.works = std::move(works);
  scenario.phase = std::move(phase);
  scenario.outcomes = {std::move(outcomes)};
  // Nothing can happen with less.
  scenario.calls = {{"POST leases", 1},     {"PUT leases.member", 1},      {"WATCH durablejobs", 1},
                    {"WATCH pods", 1},      {"PUT durablejobs.status", 1}, {"WATCH leases", 1},
                    {"PUT leases.shard", 1}};
  return scenario;
}

void add_runs(std::vector<Scenario>& all) {
  const std::map<std::string, int> one_pod = {
      {"POST pods", 1}, {"PUT durablejobs.status", 2}, {"PATCH pods", 1}};
  Scenario run = named("run", {kShort}, "Succeeded", {"Succeeded"});
  run.tries_start = true;
  run.calls.insert(one_pod.begin(), one_pod.end());
  all.push_back(run);

  Scenario run_long =
      named("run-longer", {lasting(milliseconds(3500))}, "Succeeded", {"Succeeded"});
  run_long.calls["PUT durablejobs.status"] = 3;
  all.push_back(run_long);

  Scenario retry =
      named("retry", {kFails, kFails, kShort}, "Succeeded", {"Failed", "Failed", "Succeeded"});
  retry.calls["POST pods"] = 3;
  retry.calls["PATCH pods"] = 3;
  retry.calls["PUT durablejobs.status"] = 6;
  all.push_back(retry);

  Scenario spent = named("backoff-limit", {kFails}, "Failed", {"Failed", "Failed"});
  spent.spec = {{"backoffLimit", 1}};
  spent.calls["POST pods"] = 2;
  all.push_back(spent);

  Scenario start = named("start-timeout", {kShort}, "Succeeded", {"StartTimeout", "Succeeded"});
  start.spec = {{"startDeadlineSeconds", 4}};
  start.steps = {
      {at_the_start, kAtOnce, [](Trial& t) { t.cluster().image_errors(true); }},
      {when_ended("StartTimeout"), kAtOnce, [](Trial& t) { t.cluster().image_errors(false); }}};
  start.calls["GET pods"] = 1;
  start.calls["DELETE pods"] = 1;
  all.push_back(start);

  Scenario schedule = start;
  schedule.name = "schedule-deadline";
  schedule.spec = {{"scheduleDeadlineSeconds", 4}};
  schedule.steps = {
      {at_the_start, kAtOnce, [](Trial& t) { t.cluster().unschedulable(true); }},
      {when_ended("StartTimeout"), kAtOnce, [](Trial& t) { t.cluster().unschedulable(false); }}};
  all.push_back(schedule);

  // Longer than its start deadline and its whole time, which both stand still meanwhile.
  Scenario gated = named("gated", {kShort}, "Succeeded", {"Succeeded"});
  gated.spec = {{"startDeadlineSeconds", 20},
                {"activeDeadlineSeconds", 25},
                {"template", {{"spec", {{"schedulingGates", Json::array({{{"name", kGate}}})}}}}}};
  gated.calls["PUT durablejobs.status"] = 3;
  all.push_back(gated);

  Scenario attempt =
      named("attempt-deadline", {kEndless, kShort}, "Succeeded", {"DeadlineExceeded", "Succeeded"});
  attempt.spec = {{"attemptDeadlineSeconds", 3}};
  attempt.calls["DELETE pods"] = 1;
  all.push_back(attempt);

  Scenario active = named("active-deadline", {kEndless}, "Failed", {"Cancelled"});
  active.spec = {{"activeDeadlineSeconds", 5}};
  active.calls["DELETE pods"] = 1;
  all.push_back(active);

  Scenario deferred = named("deferred", {kFails, kShort}, "Succeeded", {"Deferred", "Succeeded"});
  deferred.spec = {
      {"podFailurePolicy",
       {{"rules",
         Json::array({{{"action", "Defer"},
                       {"deferSeconds", 3},
                       {"onExitCodes", {{"operator", "In"}, {"values", Json::array({1})}}}}})}}}};
  all.push_back(deferred);

  Scenario refused = named("creation-refused", {kShort}, "Succeeded", {"Succeeded"});
  refused.steps = {{at_the_start, kAtOnce, [](Trial& t) { t.gateway().quota(true); }},
                   {when_refused, kSoon, [](Trial& t) { t.gateway().quota(false); }}};
  refused.calls["POST pods"] = 2;
  all.push_back(refused);

  Scenario broken = refused;
  broken.name = "creation-broken";
  broken.steps = {{at_the_start, kAtOnce, [](Trial& t) { t.gateway().broken_pods(true); }},
                  {when_refused, kSoon, [](Trial& t) { t.gateway().broken_pods(false); }}};
  all.push_back(broken);
}

// One stage fails and is forgiven, one is deferred, and one cleans up.
void add_stages(std::vector<Scenario>& all) {
  Scenario stages = named("stages", {kShort, kFails, kFails, kShort, kShort}, "Succeeded",
                          {"Succeeded", "Failed", "Deferred", "Succeeded", "Succeeded"});
  stages.spec["stages"] = Json::parse(R"([
      {"name": "refine", "onFailure": "Continue", "backoffLimit": 0},
      {"name": "verify", "podFailurePolicy": {"rules": [
        {"action": "Defer", "deferSeconds": 3, "onExitCodes": {"operator": "In", "values": [1]}}]}},
      {"name": "clean-up", "when": "Always"}])");
  stages.calls["POST pods"] = 5;
  stages.calls["PUT durablejobs.status"] = 6;
  all.push_back(stages);

  Scenario failed = named("stages-failed", {kFails, kShort}, "Failed", {"Failed", "Succeeded"});
  failed.spec = {{"backoffLimit", 0}, {"stages", Json::parse(R"([{"name": "verify"},
                                            {"name": "clean-up", "when": "Always"}])")}};
  failed.calls["POST pods"] = 2;
  all.push_back(failed);

  Scenario cancelled =
      named("stages-cancelled", {kEndless, kShort}, "Cancelled", {"Cancelled", "Succeeded"});
  cancelled.spec = {{"stages", failed.spec["stages"]}};
  cancelled.steps = {{when_pod_runs, kSoon, kCancel}};
  cancelled.calls["DELETE pods"] = 1;
  all.push_back(cancelled);
}

// `outcomes` has one list for each way it may end, each in alphabetical order.
Scenario of_runs(const char* name, int completions, int parallelism, std::vector<Work> works,
                 std::vector<std::vector<std::string>> outcomes) {
  Scenario runs = named(name, std::move(works), "Succeeded", {});
  runs.outcomes = std::move(outcomes);
  runs.runs_at_once = parallelism;
  runs.spec = {
      {"completions", completions}, {"parallelism", parallelism}, {"completionMode", "Indexed"}};
  runs.calls["POST pods"] = completions;
  runs.calls["PATCH pods"] = completions;
  return runs;
}

// The list with this word in front, or behind, so many times more.
std::vector<std::string> with(int times, const std::string& word, std::vector<std::string> rest) {
  rest.insert(word < rest.front() ? rest.begin() : rest.end(), static_cast<std::size_t>(times),
              word);
  return rest;
}

void add_many_runs(std::vector<Scenario>& all) {
  const auto successes = [](int times) {
    return std::vector<std::string>(static_cast<std::size_t>(times), "Succeeded");
  };
  all.push_back(of_runs("runs", 4, 3, {kShort}, {successes(4)}));
  all.push_back(
      of_runs("runs-retry", 3, 3, {kShort, kFails, kShort}, {with(1, "Failed", successes(3))}));

  Scenario index = of_runs("runs-fail-index", 3, 2, {kFails, kFails, kShort},
                           {{"Failed", "Failed", "Succeeded"}});
  index.spec["backoffLimitPerIndex"] = 0;
  index.spec["backoffLimit"] = 100;
  index.phase = "Failed";
  all.push_back(index);

  Scenario policy =
      of_runs("runs-fail-job", 3, 3, {kFails, kEndless},
              {{"Cancelled", "Cancelled", "Failed"}, {"Cancelled", "Failed"}, {"Failed"}});
  policy.spec["podFailurePolicy"] = {
      {"rules",
       Json::array({{{"action", "FailJob"},
                     {"onExitCodes", {{"operator", "In"}, {"values", Json::array({1})}}}}})}};
  policy.phase = "Failed";
  policy.calls["POST pods"] = 3;
  all.push_back(policy);

  Scenario lost = of_runs("runs-lost-node", 3, 3, {lasting(seconds(6))}, {});
  for (int times = 1; times <= 3; ++times)
    lost.outcomes.push_back(with(times, "Lost", successes(3)));
  lost.steps = {{when_pod_runs, kSoon, power_off}, {when_ended("Lost"), kSoon, bring_back}};
  lost.calls["POST pods"] = 4;
  all.push_back(lost);

  Scenario suspended = of_runs("runs-suspend-resume", 2, 2, {kLong, kLong, kShort}, {});
  for (int times = 1; times <= 2; ++times)
    suspended.outcomes.push_back(with(times, "Suspended", successes(2)));
  suspended.steps = {{when_pod_runs, kSoon, kSuspend}, {when_phase("Suspended"), kSoon, kResume}};
  suspended.calls["POST pods"] = 3;
  all.push_back(suspended);

  Scenario fewer = of_runs("runs-fewer", 3, 3, {lasting(seconds(3))}, {successes(3)});
  for (int times = 1; times <= 2; ++times)
    fewer.outcomes.push_back(with(times, "Suspended", successes(3)));
  fewer.steps = {{when_pod_runs, kSoon, [](Trial& t) { t.patch({{"parallelism", 1}}); }}};
  all.push_back(fewer);

  Scenario heartbeat = of_runs("runs-heartbeat", 2, 2, {lasting(seconds(2))}, {successes(2)});
  heartbeat.spec["heartbeat"] = {{"leaseDurationSeconds", kLeaseDuration.count()}};
  heartbeat.calls["POST leases"] = 4;
  heartbeat.calls["DELETE leases"] = 2;
  all.push_back(heartbeat);
}

void add_losses(std::vector<Scenario>& all) {
  Scenario lost = named("lost-node", {kEndless, kShort}, "Succeeded", {"Lost", "Succeeded"});
  lost.steps = {{when_pod_runs, kSoon, power_off}, {when_ended("Lost"), kSoon, bring_back}};
  lost.calls["GET leases"] = 1;
  lost.calls["DELETE pods"] = 1;
  all.push_back(lost);

  // Its silence goes on record before the verdict.
  Scenario recorded = lost;
  recorded.name = "lost-node-on-record";
  recorded.spec = {{"lostAfterSeconds", 40}};
  recorded.calls["PUT leases.shard"] = 3;
  all.push_back(recorded);

  // A node with a pod of another controller, and perhaps with the job's.
  Scenario others = named("other-controllers", {lasting(seconds(80))}, "Succeeded", {"Succeeded"});
  others.outcomes.push_back({"Lost", "Succeeded"});
  others.others = true;
  others.steps = {{when_pod_runs, seconds(3), [](Trial& t) { t.power_off_others(); }},
                  {[](Trial& t) { return !t.others_hang(); }, kSoon, bring_back}};
  others.calls["GET nodes"] = 1;
  others.calls["PATCH pods.status"] = 1;
  others.calls["DELETE pods"] = 1;
  all.push_back(others);

  Scenario gone = named("node-object-gone", {kEndless, kShort}, "Succeeded", {"Lost", "Succeeded"});
  gone.steps = {{when_pod_runs, kSoon, [](Trial& trial) { trial.remove_node(); }},
                {when_ended("Lost"), kSoon, bring_back}};
  gone.calls["DELETE pods"] = 1;
  all.push_back(gone);

  Scenario deleted = named("pod-deleted", {kEndless, kShort}, "Succeeded", {"Lost", "Succeeded"});
  deleted.steps = {{when_pod_runs, kSoon, [](Trial& t) { t.delete_pod(/*force=*/false); }}};
  deleted.calls["PATCH pods"] = 2;
  all.push_back(deleted);

  Scenario vanished = named("pod-vanished", {kEndless, kShort}, "Succeeded", {"Lost", "Succeeded"});
  vanished.steps = {{when_pod_runs, kSoon, [](Trial& t) { t.delete_pod(/*force=*/true); }}};
  vanished.calls["GET pods"] = 1;
  all.push_back(vanished);

  Scenario orphan = named("owner-removed", {kEndless, kShort}, "Succeeded", {"Lost", "Succeeded"});
  orphan.spec = {{"podReplacementPolicy", "Failed"}};
  orphan.steps = {{when_pod_is_on_record, kSoon, [](Trial& t) { t.strip_owner(); }}};
  orphan.calls["DELETE pods"] = 1;
  all.push_back(orphan);
}

// The job's Lease is granted, taken, and granted again once its last holder cannot run any more.
void add_heartbeats(std::vector<Scenario>& all) {
  const Json heartbeat = {{"leaseDurationSeconds", kLeaseDuration.count()}};
  Scenario lost = named("heartbeat-lost", {kEndless, kShort}, "Succeeded", {"Lost", "Succeeded"});
  lost.spec = {{"heartbeat", heartbeat}};
  lost.steps = {{when_worker_runs, kSoon, power_off}, {when_ended("Lost"), kSoon, bring_back}};
  lost.calls["POST leases"] = 3;  // its own, a member's, the shards'
  lost.calls["GET leases"] = 1;
  lost.calls["PUT leases"] = 2;
  lost.calls["DELETE pods"] = 1;
  all.push_back(lost);

  // Whoever held it is unknown from then on, so the next attempt waits for the whole duration.
  Scenario deleted =
      named("heartbeat-lease-deleted", {kFails, kShort}, "Succeeded", {"Failed", "Succeeded"});
  deleted.spec = {{"heartbeat", heartbeat}, {"retryBackoff", {{"initialSeconds", 3}}}};
  deleted.steps = {
      {when_phase("Backoff"), kAtOnce, [](Trial& trial) { trial.delete_lease(); }},
      {when_worker_runs, kAtOnce, [](Trial& trial) { trial.check_waited(kLeaseDuration); }}};
  deleted.calls["POST leases"] = 4;
  deleted.calls["PUT leases"] = 1;
  all.push_back(deleted);
}

void add_cancels(std::vector<Scenario>& all) {
  Scenario running = named("cancel-running", {kEndless}, "Cancelled", {"Cancelled"});
  running.steps = {{when_pod_runs, kSoon, kCancel}};
  running.calls["DELETE pods"] = 1;
  all.push_back(running);

  Scenario running_dead = named("cancel-running-dead", {kEndless}, "Cancelled", {"Cancelled"});
  running_dead.steps = {{when_pod_runs, kSoon, power_off},
                        {at_the_start, kSoon, kCancel},
                        {when_phase("Cancelled"), kSoon, bring_back}};
  running_dead.calls["DELETE pods"] = 1;
  all.push_back(running_dead);

  Scenario backoff = named("cancel-backoff", {kFails}, "Cancelled", {"Failed"});
  backoff.spec = {{"retryBackoff", {{"initialSeconds", 60}}}};
  backoff.steps = {{when_phase("Backoff"), kSoon, kCancel}};
  all.push_back(backoff);

  Scenario backoff_dead =
      named("cancel-backoff-dead", {kEndless}, "Cancelled", {"DeadlineExceeded"});
  backoff_dead.spec = {{"retryBackoff", {{"initialSeconds", 60}}}, {"attemptDeadlineSeconds", 3}};
  backoff_dead.steps = {{when_pod_runs, kSoon, power_off},
                        {when_phase("Backoff"), kSoon, kCancel},
                        {when_phase("Cancelled"), kSoon, bring_back}};
  // A kubelet's fast clock reports no start, and the next replica counts from when it saw the pod
  // run.
  backoff_dead.outcomes.push_back({"Lost", "DeadlineExceeded"});
  all.push_back(backoff_dead);

  Scenario suspended = named("cancel-suspended", {kShort}, "Cancelled", {});
  suspended.spec = {{"suspend", true}};
  suspended.steps = {{when_phase("Suspended"), kSoon, kCancel}};
  suspended.calls["PUT durablejobs.status"] = 2;
  all.push_back(suspended);

  Scenario suspended_dead = named("cancel-suspended-dead", {kEndless}, "Cancelled", {"Suspended"});
  suspended_dead.steps = {{when_pod_runs, kSoon, power_off},
                          {at_the_start, kSoon, kSuspend},
                          {when_phase("Suspended"), kSoon, kCancel},
                          {when_phase("Cancelled"), kSoon, bring_back}};
  all.push_back(suspended_dead);

  // Resumed, and the old pod takes its time: with this policy the next attempt waits for it.
  Work stubborn = kEndless;
  stubborn.sigterm_takes = seconds(5);
  Scenario pending = named("cancel-pending", {stubborn}, "Cancelled", {"Suspended"});
  pending.spec = {{"podReplacementPolicy", "Failed"},
                  {"template", {{"spec", {{"terminationGracePeriodSeconds", 8}}}}}};
  pending.steps = {{when_pod_runs, kSoon, kSuspend},
                   {when_phase("Suspended"), kSoon, kResume},
                   {when_phase("Pending"), kSoon, kCancel}};
  // When nobody was there to see it end the next attempt has begun by then.
  pending.outcomes.push_back({"Suspended", "Cancelled"});
  all.push_back(pending);

  Scenario pending_dead = pending;
  pending_dead.name = "cancel-pending-dead";
  pending_dead.steps.insert(pending_dead.steps.begin(), Step{when_pod_runs, kSoon, power_off});
  pending_dead.steps[1].when = at_the_start;
  pending_dead.steps.push_back({when_phase("Cancelled"), kSoon, bring_back});
  pending_dead.outcomes = {{"Suspended"}};
  all.push_back(pending_dead);
}

void add_ends(std::vector<Scenario>& all) {
  Scenario suspend =
      named("suspend-resume", {kEndless, kShort}, "Succeeded", {"Suspended", "Succeeded"});
  suspend.steps = {{when_pod_runs, kSoon, kSuspend}, {when_phase("Suspended"), kSoon, kResume}};
  suspend.calls["PUT durablejobs.status"] = 5;
  all.push_back(suspend);

  Scenario ttl = named("ttl", {kShort}, "", {"Succeeded"});
  ttl.spec = {{"ttlSecondsAfterFinished", 2}};
  ttl.calls["DELETE durablejobs"] = 1;
  all.push_back(ttl);

  for (const char* policy : {"Background", "Foreground", "Orphan"}) {
    Scenario deletion = named("", {kEndless}, "", {});
    deletion.name = std::string("delete-") + policy;
    deletion.steps = {{when_pod_runs, kSoon, [policy](Trial& t) { t.delete_jobs(policy); }}};
    deletion.calls["PATCH pods"] = 1;
    all.push_back(deletion);
  }
}

// Whoever dies between a delivery and its record delivers again. Nobody forgets an event.
void add_notifications(std::vector<Scenario>& all) {
  Scenario notified = named("told", {kFails, kShort}, "Succeeded", {"Failed", "Succeeded"});
  notified.spec = {{"notify", Json::array({"chat", "failures"})}};
  notified.calls["PUT durablejobs.status"] = 5;
  all.push_back(notified);

  Scenario then_gone = named("told-then-gone", {kFails}, "", {"Failed"});
  then_gone.spec = {{"notify", Json::array({"chat", "failures"})},
                    {"backoffLimit", 0},
                    {"ttlSecondsAfterFinished", 0}};
  then_gone.calls["PUT durablejobs.status"] = 3;
  then_gone.calls["DELETE durablejobs"] = 1;
  all.push_back(then_gone);
}

void add_replicas(std::vector<Scenario>& all) {
  Scenario takeover = named("takeover", {lasting(seconds(4))}, "Succeeded", {"Succeeded"});
  takeover.jobs = 2;
  takeover.tries_start = true;
  takeover.steps = {{when_pod_runs, kSoon, [](Trial& trial) { trial.crash_owner(); }}};
  takeover.moves = true;
  takeover.calls["PUT leases.shard"] = 1;
  all.push_back(takeover);

  Scenario stop = named("clean-stop", {lasting(seconds(4))}, "Succeeded", {"Succeeded"});
  stop.jobs = 2;
  stop.tries_start = true;
  stop.steps = {{when_pod_runs, kSoon, [](Trial& trial) { trial.stop_owner(); }}};
  stop.cuts_off = true;
  stop.calls["DELETE leases.member"] = 1;
  all.push_back(stop);

  Scenario handover = named("hand-over", {lasting(seconds(6))}, "Succeeded", {"Succeeded"});
  handover.fewest_replicas = 2;
  handover.replicas_at_start = 1;
  handover.jobs = 4;
  handover.moves = true;
  handover.tries_start = true;
  handover.steps = {{when_pod_runs, kSoon, [](Trial& trial) { trial.start_replica(1); }}};
  handover.calls["PUT leases.shard"] = 2;
  all.push_back(handover);
}

// Jobs in a queue. Their places say what is between admission and start.
Scenario in_queue(const char* name, int jobs, std::vector<Work> works,
                  std::vector<std::string> outcomes) {
  Scenario queue = named(name, std::move(works), "Succeeded", std::move(outcomes));
  queue.jobs = jobs;
  queue.queue = {{"concurrency", 1}};
  // The later, the sooner.
  queue.place = [](int job) { return Json{{"priority", job}}; };
  queue.calls["PUT jobqueues.status"] = 1 + jobs;
  queue.calls["POST pods"] = jobs;
  return queue;
}

auto when_admitted(int job) {
  return [job](Trial& trial) { return trial.is_admitted(job); };
}

auto when_job_is(int job, std::string phase) {
  return [job, phase = std::move(phase)](Trial& trial) { return trial.phase(job) == phase; };
}

void add_queues(std::vector<Scenario>& all) {
  all.push_back(in_queue("queue", 3, {kShort}, {"Succeeded"}));

  Scenario keys = in_queue("queue-keys", 3, {kShort}, {"Succeeded"});
  keys.fewest_replicas = 2;
  keys.queue = {{"concurrency", 2}, {"concurrencyPerKey", 1}};
  keys.place = [](int job) { return Json{{"key", job == 2 ? "b" : "a"}}; };
  all.push_back(keys);

  // Suspended when it has its permit, and before it starts: the other one gets the permit.
  Scenario suspended = in_queue("queue-suspended", 2, {kShort}, {"Succeeded"});
  suspended.steps = {{when_admitted(0), kAtOnce,
                      [](Trial& trial) {
                        trial.patch(0, {{"suspend", true}});
                      }},
                     {when_job_is(1, "Succeeded"), kSoon, [](Trial& trial) {
                        trial.patch(0, {{"suspend", false}});
                      }}};
  suspended.calls["PUT jobqueues.status"] = 4;
  all.push_back(suspended);

  Scenario backoff = in_queue("queue-backoff", 2, {kFails, kShort}, {"Failed", "Succeeded"});
  backoff.fewest_replicas = 2;
  backoff.spec = {{"retryBackoff", {{"initialSeconds", 3}}}};
  backoff.calls["PUT jobqueues.status"] = 5;
  backoff.calls["POST pods"] = 4;
  all.push_back(backoff);

  Scenario missing = in_queue("queue-missing", 1, {kShort}, {"Succeeded"});
  missing.queue = nullptr;
  missing.steps = {{[](Trial& trial) {
                      return string_at(at(trial.status(), "waiting"), "reason") == "QueueMissing";
                    },
                    kSoon,
                    [](Trial& trial) {
                      trial.make_queue({{"concurrency", 1}});
                    }}};
  all.push_back(missing);
}

void add_workers(std::vector<Scenario>& all) {
  Scenario workers = named("workers", {kFails, kShort}, "Succeeded", {"Failed", "Succeeded"});
  workers.pool = {
      {"minWorkers", 2}, {"maxWorkers", 2}, {"slotsPerWorker", 1}, {"leaseDurationSeconds", 20}};
  workers.calls["POST pods"] = 2;
  workers.calls["PUT durablejobs.status"] = 3;
  all.push_back(workers);
}

std::vector<Scenario> every_scenario() {
  std::vector<Scenario> all;
  add_stages(all);
  add_runs(all);
  add_many_runs(all);
  add_losses(all);
  add_heartbeats(all);
  add_cancels(all);
  add_ends(all);
  add_queues(all);
  add_workers(all);
  add_notifications(all);
  add_replicas(all);
  return all;
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const auto* const all = new std::vector<Scenario>(every_scenario());
  return *all;
}

}  // namespace holdfast::simulation
