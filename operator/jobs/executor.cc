#include "operator/jobs/executor.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/invariant.h"
#include "core/json.h"
#include "core/pause.h"
#include "core/side_by_side.h"
#include "operator/jobs/channels.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {

Executor::Executor(Loop& loop, kube::Client& client, const membership::Ownership& ownership,
                   Telemetry& telemetry, events::EventSink& events, std::string agent_image)
    : loop_(loop),
      client_(client),
      ownership_(ownership),
      job_(loop, client, ownership, telemetry, events),
      creator_(loop, client, ownership, telemetry, events, std::move(agent_image)),
      pods_(loop, client, ownership, events),
      leases_(loop, client, ownership, events),
      channels_(kChannels) {}

void Executor::check_claim(const membership::Ownership::Claim& claim,
                           const codecs::CachedJob& job) const {
  invariant(ownership_.covers(claim, reconciler::shard_key(job.job)),
            "a claim is used for a job of its shard alone");
}

namespace {

const reconciler::DeletePod* as_deletion(const reconciler::Write& write) {
  return std::get_if<reconciler::DeletePod>(&write);
}

template <class... Each>
struct Kinds : Each... {
  using Each::operator()...;
};
template <class... Each>
Kinds(Each...) -> Kinds<Each...>;

Task<Result<WriteOutcome>> nothing_to_wait_for() { co_return WriteOutcome{}; }

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

Task<Result<WriteOutcome>> Executor::send(const reconciler::Write& write,
                                          const WriteSetting& setting,
                                          const BeginCreation& begin_creation) {
  return std::visit(
      Kinds{[&](const reconciler::WriteStatus& one) { return job_.write(one, setting); },
            [&](const reconciler::CreatePod& one) {
              begin_creation(one);
              return nothing_to_wait_for();
            },
            [&](const reconciler::DeletePod& one) { return pods_.stop(one, setting); },
            [&](const reconciler::ReleasePod& one) { return pods_.release(one, setting); },
            [&](const reconciler::RelabelPod& one) { return pods_.relabel(one, setting); },
            [&](const reconciler::WriteLease& one) { return leases_.write(one, setting); },
            [&](const reconciler::DeleteLease& one) { return leases_.remove(one, setting); },
            [&](const reconciler::ReleaseJob&) { return job_.release(setting); },
            [&](const reconciler::DeleteJob&) { return job_.remove(setting); }},
      write);
}

Task<Result<WriteOutcome>> Executor::perform(const reconciler::Write& write,
                                             const WriteSetting& setting,
                                             const BeginCreation& begin_creation) {
  JobMemory& memory = setting.memory;
  if (const auto refused = ownership_.may_write(setting.claim)) co_return *refused;
  SteadyTime& not_before = memory.writes_not_before[write.index()];
  const reconciler::DeletePod* const deletion = as_deletion(write);
  if (const std::optional<Error> wait = asked_to_wait(not_before, loop_.now())) {
    if (!deletion || !pods_.may_go_on_without(deletion->name, *wait, memory)) co_return *wait;
    co_return Outcome{.later = *wait};
  }
  auto task = send(write, setting, begin_creation);
  const Result<Outcome> done = co_await task;
  if (!done) heed(done.error(), loop_.now(), not_before);
  if (done && done->later) heed(*done->later, loop_.now(), not_before);
  co_return done;
}

Task<Result<WriteOutcome>> Executor::create_pod(const codecs::CachedJob& job,
                                                membership::Ownership::Claim claim,
                                                const reconciler::CreatePod& write,
                                                JobMemory& memory, Log log) {
  check_claim(claim, job);
  const WriteSetting setting{job, claim, memory, log};
  if (const auto refused = ownership_.may_write(claim)) co_return *refused;
  auto task = creator_.create(write, setting);
  co_return co_await task;
}

Task<Result<WriteOutcome>> Executor::give_up_pod(const codecs::CachedJob& job,
                                                 membership::Ownership::Claim claim,
                                                 const reconciler::CreatePod& write,
                                                 JobMemory& memory, Log log) {
  co_return creator_.give_up(write, {job, claim, memory, log});
}

Task<void> Executor::perform(Chain chain, const WriteSetting& setting,
                             const BeginCreation& begin_creation, Chains& all) {
  for (const reconciler::Write* const write : chain) {
    auto task = perform(*write, setting, begin_creation);
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

Task<Result<WriteOutcome>> Executor::perform(const codecs::CachedJob& job,
                                             membership::Ownership::Claim claim,
                                             const reconciler::Decision& decision,
                                             JobMemory& memory, Log log,
                                             BeginCreation begin_creation) {
  check_claim(claim, job);
  const WriteSetting setting{job, claim, memory, log};
  Chains all;
  std::set<std::string> stopped;  // the pods that it deletes
  std::map<ChainKey, Chain> chains;
  std::vector<ChainKey> order;
  for (const reconciler::Write& write : decision.writes) {
    if (const auto* const deletion = as_deletion(write)) stopped.insert(deletion->name);
    if (std::holds_alternative<reconciler::WriteStatus>(write)) {
      auto task = perform(write, setting, begin_creation);
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
  for (auto* const times : {&memory.deletions.failing_since, &memory.deletions.stay_until}) {
    std::erase_if(*times, is_over);
  }
  std::erase_if(memory.deletions.troubles, is_over);
  std::vector<std::function<Task<void>()>> tasks;
  tasks.reserve(order.size());
  for (const ChainKey& chain : order) {
    tasks.emplace_back([this, &setting, &begin_creation, &all, writes = std::move(chains[chain])] {
      return perform(writes, setting, begin_creation, all);
    });
  }
  const Channels channels(channels_, job.namespace_, tasks.size());
  auto together = side_by_side(loop_, channels.count(), std::move(tasks));
  co_await together;
  // Intents of this decision must not stay without their pods for a failed clean-up.
  if (all.failure && !all.outcome.decide_again) co_return *all.failure;
  if (all.failure) all.outcome.later = all.failure;
  co_return all.outcome;
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
                   body.dump(), ownership_.in_time());
  const Result<JsonDocument> answer = co_await post;
  co_return !answer && answer.error().code == ErrorCode::kForbidden &&
      answer.error().message.find("being terminated") != std::string::npos;
}

}  // namespace holdfast::jobs
