#include "operator/jobs/executor.h"

#include <algorithm>

#include "core/invariant.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"

namespace holdfast::controller {

Executor::Executor(Loop& loop, kube::Client& client, const Ownership& ownership,
                   Telemetry& telemetry, EventSink& events, std::string agent_image)
    : loop_(loop),
      client_(client),
      ownership_(ownership),
      telemetry_(telemetry),
      events_(events),
      agent_image_(std::move(agent_image)) {}

Status Executor::may_write(const Ownership::Claim& claim) const {
  if (ownership_.holds(claim)) return Unit{};
  return make_error(ErrorCode::kCancelled, "this replica no longer holds the job's shard");
}

void Executor::check_claim(const Ownership::Claim& claim, const CachedJob& job) const {
  invariant(ownership_.covers(claim, job.uid), "a claim is used for a job of its shard alone");
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

Task<Result<Executor::Outcome>> Executor::perform(const CachedJob& job, Ownership::Claim claim,
                                                  const reconciler::Decision& decision,
                                                  JobMemory& memory, Log log,
                                                  BeginCreation begin_creation) {
  check_claim(claim, job);
  const Setting setting{job, claim, memory, log, begin_creation};
  Outcome outcome;
  const auto stops = [](const reconciler::Write& write) {
    return std::holds_alternative<reconciler::DeletePod>(write);
  };
  if (std::none_of(decision.writes.begin(), decision.writes.end(), stops)) {
    memory.stop_failing_since.reset();
  }
  for (const reconciler::Write& write : decision.writes) {
    const Status allowed = may_write(claim);
    if (!allowed) co_return allowed.error();
    SteadyTime& not_before = memory.writes_not_before[write.index()];
    if (const std::optional<Error> wait = asked_to_wait(not_before, loop_.now())) {
      if (!stops(write) || !may_go_on_without(*wait, memory)) co_return *wait;
      outcome.later = *wait;
      continue;
    }
    auto task = std::visit([&](const auto& kind) { return apply(kind, setting); }, write);
    const Result<Outcome> done = co_await task;
    if (!done) heed(done.error(), loop_.now(), not_before);
    if (!done || done->decide_again) co_return done;
    if (!done->later) continue;
    heed(*done->later, loop_.now(), not_before);
    outcome.later = done->later;
  }
  co_return outcome;
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
