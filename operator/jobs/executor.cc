#include "operator/jobs/executor.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/invariant.h"
#include "core/json.h"
#include "core/side_by_side.h"
#include "operator/jobs/lanes.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::controller {

Executor::Executor(Loop& loop, kube::Client& client, const Ownership& ownership,
                   Telemetry& telemetry, EventSink& events, std::string agent_image)
    : loop_(loop),
      client_(client),
      ownership_(ownership),
      telemetry_(telemetry),
      events_(events),
      agent_image_(std::move(agent_image)),
      lanes_(kLanes) {}

Status Executor::may_write(const Ownership::Claim& claim) const {
  if (ownership_.holds(claim)) return Unit{};
  return make_error(ErrorCode::kCancelled, "this replica no longer holds the shard");
}

void Executor::check_claim(const Ownership::Claim& claim, const CachedJob& job) const {
  invariant(ownership_.covers(claim, reconciler::shard_key(job.job)),
            "a claim is used for a job of its shard alone");
}

kube::CallOptions Executor::within_time() const {
  kube::CallOptions options;
  options.timeout = std::min(options.timeout, ownership_.time_left());
  return options;
}

// The watch shows the written object. Only the version in the answer counts.
kube::CallOptions Executor::for_its_version() const {
  kube::CallOptions options = within_time();
  options.answer_with_metadata = true;
  return options;
}

namespace {

const reconciler::DeletePod* as_deletion(const reconciler::Write& write) {
  return std::get_if<reconciler::DeletePod>(&write);
}

// The run of a write, and the pod if it is of no run.
using ChainKey = std::pair<std::int64_t, std::string>;

struct KeyOf {
  ChainKey operator()(const reconciler::WriteStatus&) const { return {}; }
  // Nothing else holds up the end of the time to live.
  ChainKey operator()(const reconciler::ReleaseJob&) const { return {reconciler::kNoRun, ""}; }
  ChainKey operator()(const reconciler::DeleteJob&) const { return {reconciler::kNoRun, ""}; }
  ChainKey operator()(const reconciler::WriteLease& write) const { return {write.run, ""}; }
  ChainKey operator()(const reconciler::DeleteLease& write) const { return {write.run, ""}; }
  template <class PodWrite>
  ChainKey operator()(const PodWrite& write) const {
    return {write.run, write.run == reconciler::kNoRun ? write.name : ""};
  }
};

}  // namespace

Task<Result<Executor::Outcome>> Executor::perform(const reconciler::Write& write,
                                                  const Setting& setting) {
  JobMemory& memory = setting.memory;
  const Status allowed = may_write(setting.claim);
  if (!allowed) co_return allowed.error();
  SteadyTime& not_before = memory.writes_not_before[write.index()];
  const reconciler::DeletePod* const deletion = as_deletion(write);
  if (const std::optional<Error> wait = asked_to_wait(not_before, loop_.now())) {
    if (!deletion || !may_go_on_without(deletion->name, *wait, memory)) co_return *wait;
    co_return Outcome{.later = *wait};
  }
  auto task = std::visit([&](const auto& kind) { return apply(kind, setting); }, write);
  const Result<Outcome> done = co_await task;
  if (!done) heed(done.error(), loop_.now(), not_before);
  if (done && done->later) heed(*done->later, loop_.now(), not_before);
  co_return done;
}

Task<void> Executor::perform(Chain chain, const Setting& setting, Chains& all) {
  for (const reconciler::Write* const write : chain) {
    auto task = perform(*write, setting);
    const Result<Outcome> done = co_await task;
    if (!done) {
      if (!all.failure) all.failure = done.error();
      co_return;
    }
    if (done->later) all.outcome.later = done->later;
    if (done->decide_again) {
      all.outcome.decide_again = true;
      co_return;
    }
  }
}

Task<Result<Executor::Outcome>> Executor::perform(const CachedJob& job, Ownership::Claim claim,
                                                  const reconciler::Decision& decision,
                                                  JobMemory& memory, Log log,
                                                  BeginCreation begin_creation) {
  check_claim(claim, job);
  const Setting setting{job, claim, memory, log, begin_creation};
  Chains all;
  std::set<std::string> stopped;  // the pods that it deletes
  std::map<ChainKey, Chain> chains;
  std::vector<ChainKey> order;
  for (const reconciler::Write& write : decision.writes) {
    if (const auto* const deletion = as_deletion(write)) stopped.insert(deletion->name);
    if (std::holds_alternative<reconciler::WriteStatus>(write)) {
      auto task = perform(write, setting);
      const Result<Outcome> done = co_await task;
      if (!done) co_return done;
      all.outcome.decide_again = done->decide_again;
      continue;
    }
    const ChainKey chain = std::visit(KeyOf{}, write);
    if (chains[chain].empty()) order.push_back(chain);
    chains[chain].push_back(&write);
  }
  const auto is_over = [&](const auto& entry) { return stopped.count(entry.first) == 0; };
  for (auto* const times : {&memory.stop_failing_since, &memory.stay_until}) {
    std::erase_if(*times, is_over);
  }
  std::erase_if(memory.deletions, is_over);
  std::vector<std::function<Task<void>()>> tasks;
  tasks.reserve(order.size());
  for (const ChainKey& chain : order) {
    tasks.emplace_back([this, &setting, &all, writes = std::move(chains[chain])] {
      return perform(writes, setting, all);
    });
  }
  const Lanes lanes(lanes_, job.namespace_, tasks.size());
  auto together = side_by_side(loop_, lanes.count(), std::move(tasks));
  co_await together;
  // Intents of this decision must not stay without their pods for a failed clean-up.
  if (all.failure && !all.outcome.decide_again) co_return *all.failure;
  if (all.failure) all.outcome.later = all.failure;
  co_return all.outcome;
}

Task<Result<Executor::Outcome>> Executor::apply(const reconciler::ReleaseJob&,
                                                const Setting& setting) {
  const CachedJob& job = setting.job;
  auto read = texts(setting, Needs::kMetadata, within_time());
  const Result<JobTexts> current = co_await read;
  if (!current) co_return current.error();
  kube::CallOptions options = for_its_version();
  options.content_type = "application/merge-patch+json";
  auto patch = client_.patch(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                               job.namespace_, job.name),
                             job_release_body(job.job, current->metadata), options);
  const Result<JsonDocument> answer = co_await patch;
  if (answer) raise(setting.memory.job_version, *answer);
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  co_return Outcome{};
}

Task<bool> Executor::namespace_goes(std::string namespace_) {
  const Json body = {
      {"apiVersion", "v1"},
      {"kind", "PodTemplate"},
      {"metadata", {{"generateName", "holdfast-look-"}}},
      {"template",
       {{"spec", {{"containers", Json::array({{{"name", "none"}, {"image", "none"}}})}}}}}};
  auto post =
      client_.post(kube::collection_path("/api/v1", "podtemplates", namespace_) + "?dryRun=All",
                   body.dump(), within_time());
  const Result<JsonDocument> answer = co_await post;
  co_return !answer && answer.error().code == ErrorCode::kForbidden &&
      answer.error().message.find("being terminated") != std::string::npos;
}

Task<Result<Executor::Outcome>> Executor::apply(const reconciler::DeleteJob&,
                                                const Setting& setting) {
  const CachedJob& job = setting.job;
  auto del = client_.del(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                           job.namespace_, job.name),
                         preconditions(job.uid, job.version), within_time());
  const Result<JsonDocument> answer = co_await del;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  co_return Outcome{};
}

}  // namespace holdfast::controller
