// Users of batch/v1 Jobs that Holdfast runs.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reconciler/names.h"
#include "tests/simulation/draw.h"
#include "tests/simulation/ledger_lane.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kCleanUpPeriod = seconds(1);

std::string batch_target(const std::string& namespace_, const std::string& name = "") {
  return "/apis/batch/v1/namespaces/" + namespace_ + "/jobs" + (name.empty() ? "" : "/" + name);
}

// A Job has the fields of batch/v1; annotations give the others.
Json drawn_batch_job(const std::string& ns, const std::string& name, std::uint64_t seed) {
  Draw draw(mix(seed, 40));
  const Json drawn = drawn_spec(seed);
  Json spec = {{"managedBy", "holdfast.dev/operator"}};
  for (const char* const field :
       {"template", "backoffLimit", "activeDeadlineSeconds", "podReplacementPolicy"}) {
    if (drawn.contains(field)) spec[field] = drawn[field];
  }
  Json annotations = Json::object();
  for (const char* const field : {"lostAfterSeconds", "startDeadlineSeconds", "disruptionLimit",
                                  "retryBackoff", "scheduleDeadlineSeconds"}) {
    if (!drawn.contains(field)) continue;
    annotations[std::string("holdfast.dev/") + field] = drawn[field].dump();
  }
  if (draw.percent(50)) {
    spec["completions"] = draw.percent(5) ? 0 : draw.between(1, 6);
    spec["parallelism"] = draw.between(1, 3);
    if (draw.percent(50)) spec["completionMode"] = "Indexed";
    if (mix(seed, 52) % 3 == 0) {
      annotations["holdfast.dev/heartbeat"] = R"({"leaseDurationSeconds": 20})";
    }
  } else if (draw.percent(4)) {
    spec["parallelism"] = 2;  // a work queue, which cannot be mapped
  }
  // Nobody resumes those of the exam.
  if (draw.percent(20) && !name.starts_with("batch-exam")) spec["suspend"] = true;
  if (draw.percent(40)) annotations["holdfast.dev/notify"] = "chat";
  if (draw.percent(30)) spec["ttlSecondsAfterFinished"] = draw.between(0, 20);
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"name", name}, {"namespace", ns}, {"annotations", annotations}}},
          {"spec", spec}};
}

}  // namespace

bool Users::patch_batch_job(const std::string& ns, const std::string& name, const Json& spec) {
  const auto answer = gateway_.ask(kUser, "PATCH", batch_target(ns, name), {{"spec", spec}},
                                   "application/merge-patch+json");
  return answer && answer->status == 200;
}

void Users::create_batch_job(const std::string& ns, const std::string& name, std::uint64_t seed) {
  // The Job's name is taken already.
  if (mix(seed, 41) % 8 == 0) {
    Json spec = spec_of(mix(seed, 42));
    spec.erase("suspend");  // nobody resumes it in the exam
    create(ns, name, spec);
  }
  Json job = drawn_batch_job(ns, name, seed);
  if (at_peace_) job["spec"].erase("suspend");  // nobody resumes it any more
  const auto answer = gateway_.ask(kUser, "POST", batch_target(ns), job);
  if (answer && answer->status == 201) return strikes_.fired(Act::kCreateJob);
  if (answer && answer->status == 409) return;
  later(seconds(7), [this, ns, name, seed] {
    ensure_namespaces();
    create_batch_job(ns, name, seed);
  });
}

void Users::create_stray(const std::string& ns, const std::string& name, std::uint64_t seed) {
  const Json* const job = gateway_.server().find("jobs", ns, name);
  if (!job || outcome_of(*job).empty() || recorded_name(*job).empty()) return;
  Json spec = drawn_spec(seed);
  spec["suspend"] = true;  // it does not end by itself
  gateway_.ask(kUser, "POST", "/apis/holdfast.dev/v1alpha1/namespaces/" + ns + "/durablejobs",
               {{"apiVersion", "holdfast.dev/v1alpha1"},
                {"kind", "DurableJob"},
                {"metadata",
                 {{"name", name + "-late"},
                  {"namespace", ns},
                  {"annotations", {{"holdfast.dev/batch-job", "0-0"}}},
                  {"ownerReferences", Json::array({{{"apiVersion", "batch/v1"},
                                                    {"kind", "Job"},
                                                    {"name", name},
                                                    {"uid", uid_of(*job)},
                                                    {"controller", true}}})}}},
                {"spec", spec}});
}

bool Users::act_on_batch_job(const ScriptEvent& event) {
  std::vector<const Json*> open;
  gateway_.server().for_each("jobs", [&](const Json& job) {
    if (outcome_of(job).empty() || event.seed % 8 == 0) open.push_back(&job);
  });
  if (open.empty() || gateway_.in_trouble()) return false;
  const Json& job = *open[mix(event.seed, 43) % open.size()];
  const std::string ns = string_at(at(job, "metadata"), "namespace");
  const std::string name = string_at(at(job, "metadata"), "name");
  Draw draw(mix(event.seed, 44));
  if (event.act == Act::kSuspendBatchJob) return patch_batch_job(ns, name, {{"suspend", true}});
  if (event.act == Act::kDeleteBatchJob) {
    static constexpr const char* kPolicies[] = {"Background", "Foreground", "Orphan"};
    gateway_.ask(kUser, "DELETE", batch_target(ns, name),
                 {{"propagationPolicy", kPolicies[draw.below(3)]}});
    if (!draw.percent(40)) return true;
    later(milliseconds(draw.between(0, 3000)),
          [this, ns, name, seed = event.seed] { create_batch_job(ns, name, mix(seed, 45)); });
    return true;
  }
  // As Kueue does: it admits a part of a Job, and restores it when it preempts the Job.
  const bool is_indexed = string_at(at(job, "spec"), "completionMode") == "Indexed";
  if (is_indexed && bool_at(at(job, "spec"), "suspend") && mix(event.seed, 48) % 2 == 0) {
    const std::uint64_t part = 1 + mix(event.seed, 49) % 6;
    return patch_batch_job(ns, name, {{"completions", part}, {"parallelism", part}});
  }
  // Only a suspended Job that has not started takes another template. An Indexed one may grow.
  const Json zone = {{"spec", {{"nodeSelector", {{"zone", std::to_string(draw.between(1, 9))}}}}}};
  if (patch_batch_job(ns, name, {{"template", zone}})) return true;
  if (draw.percent(8) && patch_batch_job(ns, name, {{"completions", 7}, {"parallelism", 7}})) {
    return true;
  }
  return patch_batch_job(ns, name,
                         {{"parallelism", draw.between(1, 4)},
                          {"backoffLimit", draw.between(0, 6)},
                          {"activeDeadlineSeconds", draw.between(60, 900)}});
}

// As Kubernetes does. The history limit of a CronJob is one here, for each of its names.
void Users::clean_up_batch_jobs() {
  std::vector<std::pair<std::string, std::string>> over;
  std::map<std::string, std::string> newest;  // of the Jobs that have ended
  gateway_.server().for_each("jobs", [&](const Json& job) {
    if (outcome_of(job).empty() || is_deleting(job)) return;
    const std::string ns = string_at(at(job, "metadata"), "namespace");
    const std::string name = string_at(at(job, "metadata"), "name");
    const Json& kept_for = at(at(job, "spec"), "ttlSecondsAfterFinished");
    const auto ended = ended_at(job);
    if (kept_for.is_number() && ended &&
        *ended + seconds(kept_for.get<int>()) <= gateway_.wall_clock()) {
      over.emplace_back(ns, name);
    } else if (reconciler::hash64(name) % 2 == 0) {
      std::string& last = newest[ns];
      if (!last.empty()) over.emplace_back(ns, last);
      last = name;
    }
  });
  for (const auto& [ns, name] : over) {
    gateway_.ask(kUser, "DELETE", batch_target(ns, name), {{"propagationPolicy", "Background"}});
  }
  later(kCleanUpPeriod, [this] { clean_up_batch_jobs(); });
}

void Users::resume_batch_jobs() {
  std::vector<std::pair<std::string, std::string>> suspended;
  gateway_.server().for_each("jobs", [&](const Json& job) {
    if (!bool_at(at(job, "spec"), "suspend") || !outcome_of(job).empty()) return;
    const Json& meta = at(job, "metadata");
    suspended.emplace_back(string_at(meta, "namespace"), string_at(meta, "name"));
  });
  for (const auto& [ns, name] : suspended) patch_batch_job(ns, name, {{"suspend", false}});
}

}  // namespace holdfast::simulation
