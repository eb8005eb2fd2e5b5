#include "tests/simulation/users.h"

#include "core/random.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/simulation/draw.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/server/schema.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kOthersFinalizer = "example.com/holds";
constexpr int kQueuesOfNamespace = 2;

bool is_finished(const Json& job) {
  const std::string phase = string_at(at(job, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
}

std::pair<std::string, std::string> split_key(const std::string& key) {
  const std::size_t slash = key.find('/');
  return {key.substr(0, slash), key.substr(slash + 1)};
}

}  // namespace

std::string job_target(const std::string& namespace_, const std::string& name) {
  return "/apis/holdfast.dev/v1alpha1/namespaces/" + namespace_ + "/durablejobs" +
         (name.empty() ? "" : "/" + name);
}

std::string queue_target(const std::string& namespace_, const std::string& name) {
  return "/apis/holdfast.dev/v1alpha1/namespaces/" + namespace_ + "/jobqueues" +
         (name.empty() ? "" : "/" + name);
}

Json drawn_spec(std::uint64_t seed) {
  Draw draw(seed);
  Json container = {{"name", "main"}, {"image", "worker"}, {"command", {"/work"}}};
  if (draw.percent(30)) container["env"] = Json::array({{{"name", "INPUT"}, {"value", "7"}}});
  Json pod = {{"containers", Json::array({container})},
              {"restartPolicy", "Never"},
              {"terminationGracePeriodSeconds", draw.percent(10) ? 0 : draw.between(1, 30)}};
  Json spec = {{"template",
                {{"metadata",
                  {{"annotations", {{"simulation/plan", std::to_string(draw.below(1u << 30))}}},
                   {"labels", {{"app", "worker"}}}}},
                 {"spec", pod}}},
               {"backoffLimit", draw.between(0, 5)},
               {"disruptionLimit", draw.percent(20) ? draw.between(0, 2) : 50},
               {"retryBackoff",
                {{"initialSeconds", draw.between(1, 8)},
                 {"factor", draw.between(1, 3)},
                 {"maxSeconds", draw.between(8, 40)},
                 {"jitterPercent", draw.between(0, 40)}}},
               {"startDeadlineSeconds", draw.between(20, 120)},
               {"lostAfterSeconds", draw.between(15, 60)}};
  if (draw.percent(30)) spec["attemptDeadlineSeconds"] = draw.between(5, 200);
  if (draw.percent(20)) spec["activeDeadlineSeconds"] = draw.between(30, 900);
  if (draw.percent(30)) spec["podReplacementPolicy"] = "Failed";
  if (draw.percent(30)) spec["ttlSecondsAfterFinished"] = draw.between(0, 300);
  if (draw.percent(5)) spec["suspend"] = true;
  if (draw.percent(15)) spec["scheduleDeadlineSeconds"] = draw.between(5, 120);
  Json& scheduled = spec["template"]["spec"];
  if (draw.percent(12)) {
    const std::string name = kGatePrefix + std::to_string(draw.between(0, 150));
    scheduled["schedulingGates"] = Json::array({{{"name", name}}});
  }
  if (draw.percent(8)) {
    scheduled["schedulerName"] = kSchedulerPrefix + std::to_string(draw.between(1, 200));
  }
  return spec;
}

Json lasting_spec(std::uint64_t seed) {
  Json spec = drawn_spec(seed);
  for (const char* field : {"activeDeadlineSeconds", "attemptDeadlineSeconds", "suspend",
                            "ttlSecondsAfterFinished", "scheduleDeadlineSeconds"}) {
    spec.erase(field);
  }
  for (const char* field : {"schedulerName", "schedulingGates"}) {
    spec["template"]["spec"].erase(field);
  }
  return spec;
}

std::string queue_name(int number) { return "queue-" + std::to_string(number); }

// Small, so that jobs wait.
Json drawn_queue(std::uint64_t seed) {
  Draw draw(seed);
  Json spec = Json::object();
  if (!draw.percent(10)) spec["concurrency"] = draw.between(1, 4);
  if (draw.percent(50)) spec["concurrencyPerKey"] = draw.between(1, 2);
  if (draw.percent(40)) {
    const int jobs = draw.between(1, 3);
    spec["rate"] = {{"jobs", jobs}, {"periodSeconds", jobs * draw.between(5, 40)}};
  }
  return spec;
}

// A place in a queue. Some jobs have no key.
Json drawn_place(std::uint64_t seed) {
  Draw draw(seed);
  Json place = {{"name", queue_name(draw.between(0, kQueuesOfNamespace - 1))},
                {"priority", draw.between(-2, 2)}};
  if (draw.percent(70)) place["key"] = "customer-" + std::to_string(draw.between(0, 3));
  return place;
}

// Adds what a job of 1 to 50 runs has.
void draw_runs(Draw draw, Json& spec) {
  if (draw.percent(30)) return;
  const int most = draw.percent(50) ? 8 : 50;
  const int completions = draw.between(1, most);
  spec["completions"] = completions;
  spec["parallelism"] = draw.between(1, completions);
  if (draw.percent(30)) return;
  spec["completionMode"] = "Indexed";
  const int last = draw.between(0, completions - 1);
  if (draw.percent(15)) spec["indexes"] = "0-" + std::to_string(last);
  if (draw.percent(15)) spec["indexes"] = std::to_string(last);
  const bool per_index = draw.percent(30);
  if (per_index) {
    spec["backoffLimitPerIndex"] = draw.between(0, 2);
    if (draw.percent(50)) spec["maxFailedIndexes"] = draw.between(0, completions);
  }
  if (draw.percent(20) && !spec.contains("indexes")) {
    Json rule = {{"succeededCount", draw.between(1, last + 1)}};
    if (draw.percent(50)) rule["succeededIndexes"] = "0-" + std::to_string(last);
    spec["successPolicy"] = {{"rules", Json::array({rule})}};
  }
  if (!draw.percent(30)) return;
  Json rules = Json::array();
  const char* const actions[] = {"Ignore", "Count", "FailJob", per_index ? "FailIndex" : "Count",
                                 "Defer"};
  for (int code = 1; code <= 3; ++code) {
    rules.push_back({{"action", actions[draw.below(5)]},
                     {"onExitCodes", {{"operator", "In"}, {"values", Json::array({code})}}}});
    if (rules.back()["action"] == "Defer") rules.back()["deferSeconds"] = draw.between(1, 120);
  }
  spec["podFailurePolicy"] = {{"rules", rules}};
}

// One to three stages after the first, each of one run or of many.
Json drawn_stages(std::uint64_t seed, bool many_runs, const Json& heartbeat) {
  Draw draw(seed);
  Json stages = Json::array();
  const int count = draw.between(1, 3);
  for (int number = 1; number <= count; ++number) {
    const std::uint64_t its = mix(seed, static_cast<std::uint64_t>(number));
    Json stage = drawn_spec(its);
    stage.erase("suspend");
    stage.erase("ttlSecondsAfterFinished");
    if (many_runs) draw_runs(Draw(mix(its, 12)), stage);
    if (heartbeat.is_object() && draw.percent(60)) {
      stage["heartbeat"] = {{"leaseDurationSeconds", draw.between(15, 60)}};
    }
    stage["name"] = "stage-" + std::to_string(number);
    if (draw.percent(30)) stage["onFailure"] = "Continue";
    if (draw.percent(30)) stage["when"] = "Always";
    stages.push_back(std::move(stage));
  }
  return stages;
}

void Users::later(Duration delay, std::function<void()> what) {
  scheduler_.after(delay, std::move(what));
}

void Users::start(Work work) {
  work_ = work;
  ensure_namespaces();
  if (work_.lane) clean_up_batch_jobs();
}

void Users::ensure_namespaces() {
  for (const char* name : {kNamespaces[0], kNamespaces[1], "holdfast-system", "kube-node-lease"}) {
    if (gateway_.server().find("namespaces", "", name)) continue;
    gateway_.ask(kUser, "POST", "/api/v1/namespaces",
                 {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}});
  }
  if (work_.queues) ensure_queues();
  if (work_.pools) ensure_pools();
}

bool Users::create(const std::string& ns, const std::string& name, const Json& spec) {
  const auto answer = gateway_.ask(kUser, "POST", job_target(ns),
                                   {{"apiVersion", "holdfast.dev/v1alpha1"},
                                    {"kind", "DurableJob"},
                                    {"metadata",
                                     {{"name", name},
                                      {"namespace", ns},
                                      {"labels", {{"team", ns}}},
                                      {"annotations", {{"note", "of its user"}}}}},
                                    {"spec", spec}});
  return answer && answer->status == 201;
}

bool Users::patch(const std::string& ns, const std::string& name, const Json& spec) {
  const auto answer = gateway_.ask(kUser, "PATCH", job_target(ns, name), {{"spec", spec}},
                                   "application/merge-patch+json");
  return answer && answer->status == 200;
}

// ---- Queues.

bool Users::create_queue(const std::string& ns, const std::string& name, const Json& spec) {
  const auto answer = gateway_.ask(kUser, "POST", queue_target(ns),
                                   {{"apiVersion", "holdfast.dev/v1alpha1"},
                                    {"kind", "JobQueue"},
                                    {"metadata", {{"name", name}, {"labels", {{"team", ns}}}}},
                                    {"spec", spec}});
  return answer && answer->status == 201;
}

bool Users::patch_queue(const std::string& ns, const std::string& name, const Json& spec) {
  const auto answer = gateway_.ask(kUser, "PATCH", queue_target(ns, name), {{"spec", spec}},
                                   "application/merge-patch+json");
  return answer && answer->status == 200;
}

bool Users::delete_queue(const std::string& ns, const std::string& name) {
  const auto answer = gateway_.ask(kUser, "DELETE", queue_target(ns, name));
  return answer && answer->status == 200;
}

void Users::ensure_queues() {
  for (const char* ns : kNamespaces) {
    for (int number = 0; number < kQueuesOfNamespace; ++number) {
      const std::string name = queue_name(number);
      const std::string key = std::string(ns) + "/" + name;
      if (away_.count(key) > 0 || gateway_.server().find("jobqueues", ns, name)) continue;
      create_queue(ns, name, drawn_queue(reconciler::hash64(key)));
    }
  }
}

void Users::release_queues() {
  std::vector<std::string> held;
  gateway_.server().for_each("jobqueues", [&](const Json& queue) {
    if (bool_at(at(queue, "spec"), "hold")) held.push_back(key_of(queue));
  });
  for (const std::string& key : held) {
    const auto [ns, name] = split_key(key);
    patch_queue(ns, name, {{"hold", false}});
  }
}

// False: there is no such queue now, or no such job, or nobody answers.
bool Users::act_on_queue(const ScriptEvent& event) {
  const std::string ns = kNamespaces[mix(event.seed, 17) % 2];
  const std::string name = queue_name(static_cast<int>(mix(event.seed, 18) % kQueuesOfNamespace));
  const std::uint64_t drawn = mix(event.seed, 19);
  switch (event.act) {
    case Act::kEditQueue: {
      Json spec = drawn_queue(drawn);
      for (const char* limit : {"concurrency", "concurrencyPerKey", "rate"}) {
        if (!spec.contains(limit)) spec[limit] = nullptr;
      }
      return patch_queue(ns, name, spec);
    }
    case Act::kHoldQueue:
      return patch_queue(ns, name, {{"hold", true}});
    case Act::kRecreateQueue:
      if (!delete_queue(ns, name)) return false;
      away_.insert(ns + "/" + name);
      return true;
    default: {
      std::vector<std::string> queued;
      gateway_.server().for_each("durablejobs", [&](const Json& job) {
        const bool waits = string_at(at(at(job, "status"), "waiting"), "reason") == "Queued";
        if (waits) queued.push_back(key_of(job));
      });
      if (queued.empty()) return false;
      const auto [job_ns, job] = split_key(queued[drawn % queued.size()]);
      const int priority = static_cast<int>((drawn >> 32) % 9) - 4;
      return patch(job_ns, job, {{"queue", {{"priority", priority}}}});
    }
  }
}

std::vector<std::string> Users::jobs(bool unfinished_only) const {
  std::vector<std::string> keys;
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    if (!unfinished_only || !is_finished(job)) keys.push_back(key_of(job));
  });
  return keys;
}

std::string Users::pick_job(std::uint64_t seed) const {
  // Mostly one that is not over yet.
  std::vector<std::string> keys = jobs(seed % 8 != 0);
  if (keys.empty()) keys = jobs(false);
  return keys.empty() ? "" : keys[mix(seed, 1) % keys.size()];
}

std::string Users::pick_pod(std::uint64_t seed) const {
  std::vector<std::string> live, all;
  gateway_.server().for_each("pods", [&](const Json& pod) {
    const std::string phase = string_at(at(pod, "status"), "phase");
    all.push_back(key_of(pod));
    if (phase != "Succeeded" && phase != "Failed") live.push_back(all.back());
  });
  const std::vector<std::string>& from = seed % 6 == 0 || live.empty() ? all : live;
  return from.empty() ? "" : from[mix(seed, 2) % from.size()];
}

bool Users::act(const ScriptEvent& event) {
  const std::string key = pick_job(event.seed);
  const auto [ns, name] = key.empty() ? std::pair<std::string, std::string>() : split_key(key);
  const auto fired = [&](bool done) {
    if (done) strikes_.fired(event.act);
    // The server was away, or there was nothing to act on: a little later, once.
    if (!done && event.permille == 0 && event.act != Act::kCreateJob) {
      ScriptEvent again = event;
      again.permille = 1;
      later(seconds(20), [this, again] { act(again); });
    }
    return true;
  };
  switch (event.act) {
    case Act::kCreateJob:
      if (work_.lane && mix(event.seed, 46) % 4 > 0) {
        create_batch_job(kNamespaces[(event.seed >> 4) % 2], "job-" + std::to_string(event.id),
                         event.seed);
      } else {
        create_drawn("job-" + std::to_string(event.id), event.seed);
      }
      return true;
    case Act::kEditSpec: {
      Draw draw(event.seed);
      Json all = drawn_spec(mix(event.seed, 3));
      Json some = Json::object();
      for (const char* field :
           {"backoffLimit", "disruptionLimit", "retryBackoff", "startDeadlineSeconds",
            "lostAfterSeconds", "attemptDeadlineSeconds", "activeDeadlineSeconds",
            "scheduleDeadlineSeconds", "podReplacementPolicy", "ttlSecondsAfterFinished"}) {
        if (draw.percent(25) && all.contains(field)) some[field] = all[field];
      }
      // Zero pauses the job.
      if (work_.many_runs && draw.percent(40)) some["parallelism"] = draw.between(0, 20);
      if (some.empty()) some["backoffLimit"] = draw.between(0, 3);
      return fired(!key.empty() && patch(ns, name, some));
    }
    case Act::kSuspend:
      // The Job says whether it is suspended, so nobody would let it go on.
      if (!key.empty() && is_of_a_batch_job(ns, name)) return fired(false);
      if (!key.empty() && change_runs(ns, name, event.seed)) return fired(true);
      return fired(!key.empty() && patch(ns, name, {{"suspend", true}}));
    case Act::kCancel:
      return fired(!key.empty() && patch(ns, name, {{"cancel", true}}));
    case Act::kDeleteJob:
    case Act::kRecreateJob:
      if (key.empty() || gateway_.in_trouble()) return fired(false);
      delete_job(key, event.seed, event.act == Act::kRecreateJob);
      return fired(true);
    case Act::kDeletePod:
    case Act::kForceDeletePod: {
      const std::string pod = pick_pod(event.seed);
      return fired(!pod.empty() && delete_pod(pod, event.act == Act::kForceDeletePod, event.seed));
    }
    case Act::kStripLabels: {
      const std::string pod = pick_pod(event.seed);
      if (pod.empty() || gateway_.in_trouble()) return fired(false);
      strip_labels(pod, event.seed);
      return fired(true);
    }
    case Act::kDeleteNamespace: {
      const std::string gone = kNamespaces[event.seed % 2];
      const auto answer = gateway_.ask(kUser, "DELETE", "/api/v1/namespaces/" + gone);
      if (answer) ledger_.namespace_deleted(gone);
      return fired(answer && answer->status / 100 == 2);
    }
    case Act::kForgePod:
      return fired(!key.empty() && !gateway_.in_trouble() && forge_pod(key, event.seed));
    case Act::kStripOwner:
      return fired(!key.empty() && !gateway_.in_trouble() && strip_owner(key, event.seed));
    case Act::kDeleteLease:
      return fired(!gateway_.in_trouble() && delete_lease(event.seed));
    case Act::kEditQueue:
    case Act::kHoldQueue:
    case Act::kReprioritize:
    case Act::kRecreateQueue:
      return fired(act_on_queue(event));
    case Act::kEditPool:
    case Act::kRecreatePool:
      return fired(act_on_pool(event));
    case Act::kEditBatchJob:
    case Act::kSuspendBatchJob:
    case Act::kDeleteBatchJob:
      return fired(act_on_batch_job(event));
    case Act::kNewerStatus:
      return fired(write_as_newer(event.seed));
    case Act::kNewerSpec:
      return fired(!key.empty() && patch(ns, name, {{kNewerField, event.id}}));
    case Act::kDeleteWorkerLease:
      return fired(!gateway_.in_trouble() && delete_worker_lease(event.seed));
    case Act::kEditHolder:
      return fired(!gateway_.in_trouble() && edit_holder(event.seed));
    case Act::kEditWork:
      return fired(!gateway_.in_trouble() && edit_work(event.seed));
    case Act::kTouchLeases:
      touches_ = true;
      touch_leases(0);
      return fired(true);
    case Act::kSendMessage:
      return fired(!key.empty() &&
                   patch(ns, name, {{"message", "word " + std::to_string(event.seed % 100)}}));
    case Act::kBrokenPods:
      strikes_.fired(event.act);
      gateway_.broken_pods(true);
      return true;
    case Act::kQuota:
      gateway_.quota(true);
      return true;
    default:
      return false;
  }
}

void Users::end(const ScriptEvent& event) {
  if (event.act == Act::kQuota) gateway_.quota(false);
  if (event.act == Act::kBrokenPods) gateway_.broken_pods(false);
  if (event.act == Act::kHoldQueue) release_queues();
  if (event.act == Act::kRecreateQueue) {
    away_.clear();
    if (!gateway_.in_trouble()) ensure_queues();
  }
  if (event.act == Act::kTouchLeases) touches_ = false;
  if (event.act == Act::kSuspendBatchJob) resume_batch_jobs();
  if (event.act == Act::kRecreatePool) {
    pools_away_.clear();
    if (!gateway_.in_trouble() && work_.pools) ensure_pools();
  }
  if (event.act == Act::kNewerSpec) make_known();
  // Whoever suspends jobs lets them go on: all of them.
  if (event.act != Act::kSuspend) return;
  for (const std::string& key : jobs(true)) {
    const auto [ns, name] = split_key(key);
    const Json* const job = gateway_.server().find("durablejobs", ns, name);
    if (!job || is_of_a_batch_job(ns, name)) continue;
    if (!bool_at(at(*job, "spec"), "suspend")) continue;
    const std::uint64_t seed = mix(event.seed, reconciler::hash64(name));
    if (mix(seed, 50) % 3 == 0) change_runs(ns, name, seed);
    patch(ns, name, {{"suspend", false}});
  }
}

bool Users::is_of_a_batch_job(const std::string& ns, const std::string& name) const {
  const Json* const job = gateway_.server().find("durablejobs", ns, name);
  return job && !controller_uid(*job).empty();
}

// Other numbers in the spec may depend on that of the runs.
bool Users::change_runs(const std::string& ns, const std::string& name, std::uint64_t seed) {
  const Json* const job = gateway_.server().find("durablejobs", ns, name);
  if (!job || is_of_a_batch_job(ns, name)) return false;
  const Json& spec = at(*job, "spec");
  const bool may_change = string_at(at(*job, "status"), "phase") == "Suspended" &&
                          spec.contains("completions") && !spec.contains("indexes") &&
                          !spec.contains("successPolicy") && !spec.contains("maxFailedIndexes");
  if (!may_change) return false;
  const int most = static_cast<int>(int_at(spec, "completions")) + 2;
  Draw draw(mix(seed, 51));
  return patch(ns, name, {{"completions", draw.percent(25) ? 1 : draw.between(1, most)}});
}

void Users::make_peace() {
  at_peace_ = true;
  away_.clear();
  pools_away_.clear();
  touches_ = false;
  ensure_namespaces();
  release_queues();
  resume_batch_jobs();
  make_known();
  // Data of an earlier moment may hold a job again.
  for (const std::string& key : jobs(false)) release_job(key);
  for (const std::string& squat : std::set<std::string>(squats_)) {
    if (delete_pod(squat, /*force=*/true)) squats_.erase(squat);
  }
  for (const std::string& key : jobs(true)) {
    const auto [ns, name] = split_key(key);
    const Json* const job = gateway_.server().find("durablejobs", ns, name);
    if (!job || !controller_uid(*job).empty()) continue;
    if (bool_at(at(*job, "spec"), "suspend")) patch(ns, name, {{"suspend", false}});
    if (int_at(at(*job, "spec"), "parallelism", 1) == 0) patch(ns, name, {{"parallelism", 1}});
  }
}

Json Users::spec_of(std::uint64_t seed) const {
  Json spec = drawn_spec(seed);
  if (work_.many_runs) draw_runs(Draw(mix(seed, 12)), spec);
  if (work_.heartbeats) draw_heartbeat(seed, spec);
  if (mix(seed, 14) % 4 == 0) {
    spec["stages"] = drawn_stages(mix(seed, 15), work_.many_runs, at(spec, "heartbeat"));
  }
  if (mix(seed, 24) % 5 < 2) spec["notify"] = Json::array({"chat"});
  if (mix(seed, 25) % 5 < 2) spec["notify"].push_back("failures");
  if (work_.queues && mix(seed, 16) % 5 > 0) spec["queue"] = drawn_place(mix(seed, 20));
  if (work_.pools) draw_pool(mix(seed, 21), spec);
  return spec;
}

void Users::draw_heartbeat(std::uint64_t seed, Json& spec) {
  const int duration = 15 + static_cast<int>(mix(seed, 8) % 30);
  spec["heartbeat"] = {{"leaseDurationSeconds", duration}};
  if (mix(seed, 10) % 4 > 0) {
    spec["heartbeat"]["progressDeadlineSeconds"] = duration + static_cast<int>(mix(seed, 11) % 15);
  }
}

void Users::create_large_job(int runs, std::uint64_t seed) {
  Json spec = lasting_spec(seed);
  spec["completions"] = runs;
  spec["parallelism"] = 250;
  spec["completionMode"] = "Indexed";
  spec["backoffLimit"] = runs;
  spec["backoffLimitPerIndex"] = 1;
  spec["disruptionLimit"] = 50;
  create(kNamespaces[0], "large", spec);
}

void Users::create_drawn(const std::string& name, std::uint64_t seed) {
  const std::string ns = kNamespaces[(seed >> 4) % 2];
  const Json spec = spec_of(seed);
  if (create(ns, name, spec)) return strikes_.fired(Act::kCreateJob);
  const Json* const there = gateway_.server().find("durablejobs", ns, name);
  if (there || gateway_.server().find("namespaces", "", ns)) {
    if (!gateway_.in_trouble()) return;
  }
  // The server is away, or the namespace: again when they are back.
  later(seconds(7), [this, name, seed] {
    ensure_namespaces();
    create_drawn(name, seed);
  });
}

// Another program's finalizer, which holds the job after its deletion.
void Users::hold_job(const std::string& key, Duration time) {
  const auto [ns, name] = split_key(key);
  const Json* const job = gateway_.server().find("durablejobs", ns, name);
  if (!job) return;
  Json finalizers = Json::array();
  for (const Json& one : at(at(*job, "metadata"), "finalizers")) finalizers.push_back(one);
  finalizers.push_back(kOthersFinalizer);
  gateway_.ask(kUser, "PATCH", job_target(ns, name), {{"metadata", {{"finalizers", finalizers}}}},
               "application/merge-patch+json");
  later(time, [this, key] { release_job(key); });
}

void Users::release_job(const std::string& key) {
  const auto [ns, name] = split_key(key);
  const Json* const job = gateway_.server().find("durablejobs", ns, name);
  if (!job) return;
  const Json& meta = at(*job, "metadata");
  Json rest = Json::array();
  for (const Json& one : at(meta, "finalizers")) {
    if (one != kOthersFinalizer) rest.push_back(one);
  }
  if (rest.size() == at(meta, "finalizers").size()) return;
  const auto answer =
      gateway_.ask(kUser, "PATCH", job_target(ns, name),
                   {{"metadata", {{"uid", string_at(meta, "uid")}, {"finalizers", rest}}}},
                   "application/merge-patch+json");
  if (!answer) later(seconds(1), [this, key] { release_job(key); });
}

void Users::delete_job(const std::string& key, std::uint64_t seed, bool recreate) {
  static constexpr const char* kPolicies[] = {"Background", "Foreground", "Orphan"};
  const auto [ns, name] = split_key(key);
  if (mix(seed, 7) % 4 == 0) hold_job(key, seconds(20 + static_cast<int>(mix(seed, 8) % 60)));
  gateway_.ask(kUser, "DELETE", job_target(ns, name),
               {{"propagationPolicy", kPolicies[mix(seed, 5) % 3]}});
  if (!recreate) return;
  later(milliseconds(static_cast<int>(seed % 3000)),
        [this, name = name, seed] { create_drawn(name, mix(seed, 6)); });
}

bool Users::delete_pod(const std::string& key, bool force, std::uint64_t seed) {
  const auto [ns, name] = split_key(key);
  const std::string target = pod_target(ns, name);
  if (gateway_.in_trouble()) return false;
  if (!force) {
    // As `kubectl drain --grace-period` does.
    Json options = Json::object();
    if (seed % 3 == 1) options["gracePeriodSeconds"] = 1 + mix(seed, 42) % 20;
    const auto answer = gateway_.ask(kUser, "DELETE", target, options);
    return answer && answer->status / 100 == 2;
  }
  ledger_.excuse(key);
  const auto gone = gateway_.ask(kUser, "DELETE", target, {{"gracePeriodSeconds", 0}});
  // The finalizer still holds it: that goes, too.
  gateway_.ask(kUser, "PATCH", target, {{"metadata", {{"finalizers", nullptr}}}},
               "application/merge-patch+json");
  return gone && gone->status / 100 == 2;
}

// By one who may create and delete pods, and read no jobs: on the name of this attempt or the next,
// as a stranger's pod or with the job as its owner; or in the place of the attempt's pod, whose UID
// is on record by now.
bool Users::forge_pod(const std::string& key, std::uint64_t seed) {
  const auto [ns, name] = split_key(key);
  const Json* const job = gateway_.server().find("durablejobs", ns, name);
  if (!job) return false;
  const Json& status = at(*job, "status");
  const Json run = one_run(*job, seed);
  const std::int64_t last = int_at(run, "attempt", int_at(status, "attempt"));
  const auto attempt =
      std::max<std::int64_t>(1, mix(seed, 7) % 2 == 0 ? last : int_at(status, "attempt") + 1);
  const std::string pod_name = reconciler::pod_name(name, uid_of(*job), attempt);
  const Json* const there = gateway_.server().find("pods", ns, pod_name);
  Json meta = {{"name", pod_name}, {"namespace", ns}};
  if (there) {
    if (uid_of(*there) != string_at(run, "podUID")) return false;
    for (const char* const field : {"labels", "annotations", "ownerReferences", "finalizers"}) {
      if (at(*there, "metadata").contains(field)) meta[field] = (*there)["metadata"][field];
    }
    delete_pod(ns + "/" + pod_name, /*force=*/true);
  } else if (seed % 3 != 0) {
    meta["labels"] = {{reconciler::kJobUidLabel, uid_of(*job)},
                      {reconciler::kJobNameLabel, name},
                      {reconciler::kAttemptLabel, std::to_string(attempt)}};
    meta["ownerReferences"] = Json::array({{{"apiVersion", "holdfast.dev/v1alpha1"},
                                            {"kind", "DurableJob"},
                                            {"name", name},
                                            {"uid", uid_of(*job)},
                                            {"controller", true}}});
    if (seed % 2 == 0) meta["finalizers"] = Json::array({reconciler::kFinalizer});
  }
  ledger_.excuse(ns + "/" + pod_name);
  const Json spec = {{"restartPolicy", "Never"},
                     {"terminationGracePeriodSeconds", 1},
                     {"containers", Json::array({{{"name", "main"}, {"image", "forged"}}})}};
  const auto answer =
      gateway_.ask(kUser, "POST", "/api/v1/namespaces/" + ns + "/pods",
                   {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", meta}, {"spec", spec}});
  const bool made = answer && answer->status == 201;
  if (made && !meta.contains("ownerReferences")) squats_.insert(ns + "/" + pod_name);
  return made;
}

bool Users::delete_lease(std::uint64_t seed) {
  std::vector<std::string> keys;
  gateway_.server().for_each("leases", [&](const Json& lease) {
    const std::string key = key_of(lease);
    const std::string ns = split_key(key).first;
    if (ns == kNamespaces[0] || ns == kNamespaces[1]) keys.push_back(key);
  });
  if (keys.empty()) return false;
  const auto [ns, name] = split_key(keys[mix(seed, 9) % keys.size()]);
  const auto answer = gateway_.ask(
      kUser, "DELETE", "/apis/coordination.k8s.io/v1/namespaces/" + ns + "/leases/" + name);
  return answer && answer->status / 100 == 2;
}

Json Users::one_run(const Json& job, std::uint64_t seed) {
  const Json& runs = at(at(job, "status"), "runs");
  return runs.empty() ? Json::object() : runs[mix(seed, 13) % runs.size()];
}

bool Users::strip_owner(const std::string& job_key, std::uint64_t seed) {
  const auto [ns, name] = split_key(job_key);
  const Json* const job = gateway_.server().find("durablejobs", ns, name);
  const Json run = job ? one_run(*job, seed) : Json::object();
  const std::string pod = string_at(run, "podName");
  const Json* const there = pod.empty() ? nullptr : gateway_.server().find("pods", ns, pod);
  if (!there || uid_of(*there) != string_at(run, "podUID")) return false;
  const auto answer =
      gateway_.ask(kUser, "PATCH", pod_target(ns, pod),
                   {{"metadata", {{"ownerReferences", nullptr}}}}, "application/merge-patch+json");
  return answer && answer->status == 200;
}

void Users::strip_labels(const std::string& key, std::uint64_t seed) {
  const auto [ns, name] = split_key(key);
  ledger_.excuse(key);
  Json labels = {{reconciler::kJobUidLabel, nullptr}};
  if (seed % 3 == 0) labels[reconciler::kAttemptLabel] = nullptr;
  if (seed % 3 == 1) labels = {{reconciler::kAttemptLabel, "77"}};
  const Json* const pod = gateway_.server().find("pods", ns, name);
  const std::string shard =
      pod ? string_at(at(at(*pod, "metadata"), "labels"), reconciler::kShardLabel) : "";
  const std::size_t of = shard.find("-of-");
  if (seed % 4 == 3 && of != shard.npos) {
    const int shards = std::stoi(shard.substr(of + 4));
    const int other = static_cast<int>(mix(seed, 21) % static_cast<std::uint64_t>(shards));
    labels = {{reconciler::kShardLabel, reconciler::shard_label(other, shards)}};
  }
  gateway_.ask(kUser, "PATCH", pod_target(ns, name), {{"metadata", {{"labels", labels}}}},
               "application/merge-patch+json");
}

}  // namespace holdfast::simulation
