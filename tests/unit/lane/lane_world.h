// A batch/v1 Job and its DurableJob as the API server would have them, for the tests of decide().
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lane/decide.h"
#include "reconciler/names.h"

namespace holdfast::lane {

inline Time at_second(int second) {
  return parse_time("2026-03-01T12:00:00Z").value() + std::chrono::seconds(second);
}

inline Json spec(const char* changes = "{}") {
  Json spec =
      *parse_json(R"({"managedBy": "holdfast.dev/operator", "parallelism": 1, "completions": 1,
    "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false, "podReplacementPolicy": "TerminatingOrFailed",
    "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "job-uid"}},
    "template": {"metadata": {"creationTimestamp": null, "labels": {"batch.kubernetes.io/job-name": "pi"}},
                 "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}})");
  spec.merge_patch(*parse_json(changes));
  return spec;
}

inline const Json* condition(const Json& status, const std::string& type) {
  for (const Json& one : at(status, "conditions")) {
    if (string_at(one, "type") == type) return &one;
  }
  return nullptr;
}
inline bool holds(const Json& status, const std::string& type) {
  const Json* const found = condition(status, type);
  return found && string_at(*found, "status") == "True";
}

// The API server's rules for the status of a Job with managedBy, as far as the fields that we
// write. In Kubernetes they are validateJobStatus and ValidateJobStatusUpdate.
inline void expect_valid(const BatchJob& job, const Json& before, const Json& after) {
  const bool complete = holds(after, "Complete"), failed = holds(after, "Failed");
  const bool met = holds(after, "SuccessCriteriaMet"), target = holds(after, "FailureTarget");
  EXPECT_FALSE(complete && (failed || target)) << after;
  EXPECT_FALSE(met && (failed || target)) << after;
  EXPECT_TRUE(!complete || met) << after;
  EXPECT_TRUE(!failed || target) << after;
  EXPECT_EQ(complete, at(after, "completionTime").is_string()) << after;
  if (complete) {
    EXPECT_GE(string_at(after, "completionTime"), string_at(after, "startTime"));
  }
  if (complete || failed) {
    EXPECT_EQ(int_at(after, "active"), 0) << after;
    EXPECT_TRUE(at(after, "startTime").is_string()) << after;
  }
  for (const char* const type : {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"}) {
    EXPECT_TRUE(!holds(before, type) || holds(after, type)) << type << " was taken back";
  }
  const bool indexed = string_at(job.spec, "completionMode") == "Indexed";
  EXPECT_GE(int_at(after, "failed"), int_at(before, "failed"));
  const bool shrinks = indexed && job.spec["completions"] == job.spec["parallelism"];
  EXPECT_TRUE(shrinks || int_at(after, "succeeded") >= int_at(before, "succeeded")) << after;
  EXPECT_LE(int_at(after, "ready"), int_at(after, "active")) << after;
  EXPECT_TRUE(indexed || !after.contains("completedIndexes")) << after;
  EXPECT_TRUE(job.spec.contains("backoffLimitPerIndex") || !after.contains("failedIndexes"));
  const std::string started = string_at(before, "startTime");
  if (!started.empty() && !job.suspended()) {
    EXPECT_EQ(string_at(after, "startTime"), started) << "startTime moves while it runs";
  }
}

// The objects, and what a decision does to them.
struct World {
  BatchJob job;
  std::optional<reconciler::Job> durable;
  std::string owner_uid;
  Source source;
  int created = 0;
  bool is_gone = false, name_taken = false, pods_left = false, tried = false;
  std::optional<std::string> refusal;
  std::set<std::string> refuses;  // fields of the DurableJob's spec
  std::optional<View::Refused> refused;
  std::optional<std::int64_t> ready;
  Duration ready_pause{};
  reconciler::GuardView guard;
  Time now = at_second(0);

  explicit World(Json job_spec = spec()) {
    job.namespace_ = "default";
    job.name = "pi";
    job.uid = "job-uid";
    job.version = 1;
    job.spec = std::move(job_spec);
  }

  Decision decide() const {
    View view{.job = job};
    view.is_gone = is_gone;
    view.name_taken = name_taken;
    view.tried = tried;
    view.refusal = refusal;
    view.pods_left = pods_left;
    view.refused = refused;
    view.ready = ready;
    view.ready_pause = ready_pause;
    view.guard = guard;
    view.shard_label = "3-of-32";
    view.now = now;
    if (durable) view.durable = DurableView{&*durable, owner_uid, source};
    return lane::decide(view);
  }

  // Performs at most `most` of the writes, and says how many there were.
  int perform(const Decision& decision, int most = 9) {
    int done = 0;
    if (decision.patch && done++ < most) patch(*decision.patch);
    if (decision.status && done++ < most) {
      expect_valid(job, job.status, decision.status->status);
      job.metadata = decision.status->metadata;
      job.status = decision.status->status;
      ++job.version;
    }
    if (decision.creation && done++ < most) create(*decision.creation);
    return done;
  }
  int step(int most = 9) { return perform(decide(), most); }
  // Until nothing is left to do.
  void settle() {
    constexpr int kMany = 100;
    for (int steps = 0; step() > 0; ++steps) ASSERT_LT(steps, kMany) << "it never rests";
  }

  void create(const Creation& creation) {
    if (durable) return;  // AlreadyExists
    const Json body = *parse_json(creation.body);
    ++created;
    durable.emplace();
    durable->name = creation.name;
    durable->uid = "durable-uid-" + std::to_string(created);
    durable->version = 1;
    durable->spec.completions = int_at(body["spec"], "completions", 1);
    durable->spec.parallelism = int_at(body["spec"], "parallelism", 1);
    durable->spec.backoff_limit = int_at(body["spec"], "backoffLimit", 6);
    durable->spec.indexed = string_at(body["spec"], "completionMode") == "Indexed";
    durable->spec.suspend = bool_at(body["spec"], "suspend");
    durable->status.phase = reconciler::Phase::kPending;
    owner_uid = string_at(body["metadata"]["ownerReferences"][0], "uid");
    source =
        parse_source(string_at(body["metadata"]["annotations"], reconciler::kBatchJobAnnotation));
  }
  // As the lane's controller and the API server do it together.
  void patch(const Patch& change) {
    last_patch = change.fields;
    View::Refused refused_now{change.wanted, change.refused};
    const auto is_refused = [&](const auto& one) { return refuses.count(one.key()) != 0; };
    bool takes_all = true;
    for (const auto& one : change.fields.items()) takes_all = takes_all && !is_refused(one);
    for (const Json& fields : takes_all ? std::vector{change.fields} : one_by_one(change.fields)) {
      for (const auto& one : fields.items()) {
        if (is_refused(one)) {
          refused_now.fields[one.key()] = "the test refuses it";
        } else {
          set(one.key(), one.value());
        }
      }
    }
    refused.reset();
    if (!refused_now.fields.empty()) refused = refused_now;
    if (!refused) source = change.wanted;
    ++durable->version;
  }
  void set(const std::string& field, const Json& value) {
    if (field == "suspend") durable->spec.suspend = value.get<bool>();
    if (field == "completions") durable->spec.completions = value.get<std::int64_t>();
    if (field == "backoffLimit") durable->spec.backoff_limit = value.get<std::int64_t>();
    if (field == "parallelism") durable->spec.parallelism = value.get<std::int64_t>();
  }
  void run() {
    durable->status.phase = reconciler::Phase::kRunning;
    durable->status.begun().attempt = 1;
  }
  void end(bool succeeds, const char* reason) {
    durable->status.runs.clear();
    durable->status.phase = succeeds ? reconciler::Phase::kSucceeded : reconciler::Phase::kFailed;
    if (succeeds) durable->status.completed = reconciler::IndexSet::first(1);
    if (!succeeds) durable->status.failures = 1;
    durable->status.completion_time = now;
    durable->status.conditions.push_back(
        {succeeds ? "SuccessCriteriaMet" : "FailureTarget", true, reason, "message", now});
  }
  void suspended() {
    durable->status.runs.clear();
    durable->status.phase = reconciler::Phase::kSuspended;
  }
  bool patched(const std::string& field) const { return last_patch.contains(field); }
  Json last_patch = Json::object();
};

}  // namespace holdfast::lane
