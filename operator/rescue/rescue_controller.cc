#include "operator/rescue/rescue_controller.h"

#include <algorithm>

namespace holdfast::rescue {
namespace {

using reconciler::RescueAction;

constexpr int kRescueWorkers = 16;

}  // namespace

RescueController::RescueController(Dependencies deps, Config config)
    : loop_(deps.loop),
      client_(deps.client),
      log_(deps.log),
      telemetry_(deps.telemetry),
      events_(deps.events),
      pods_(deps.pods),
      nodes_(deps.nodes),
      membership_(deps.membership),
      config_(std::move(config)),
      rescuer_({loop_, deps.client, nodes_, membership_}),
      allowance_(config_.most_per_minute),
      pool_({loop_, log_}, {.workers = kRescueWorkers, .queue = {}},
            [this](std::string key) { return reconcile(std::move(key)); }) {
  pods_.on_change([this](const auto& change) { on_pod(change); });
  // The breaker counts all nodes, so the silence of each is recorded, by one shard.
  nodes_.of_leases().keep_every_window(deps.windows, [this](const std::string& node) {
    return reconciler::shard_of(node, config_.shards);
  });
}

void RescueController::look_at_all(int shard) {
  pods_.for_each([&](const RescuePodPtr& pod) {
    if (membership_.shard_of(pod->uid) != shard) return;
    pool_.queue().add(pod->key(), controller::Priority::kLow);
  });
}

RescueController::Counts RescueController::counts() const {
  Counts counts;
  for (const auto& [uid, memory] : memories_) {
    if (!membership_.claim(uid)) continue;  // another replica's by now
    counts.held += memory->held ? 1 : 0;
    counts.failing += memory->failing ? 1 : 0;
  }
  return counts;
}

void RescueController::on_pod(const cache::View<CachedRescuePod>::Change& change) {
  if (change.before && (!change.after || change.before->uid != change.after->uid)) {
    memories_.erase(change.before->uid);
  }
  if (!change.after) return;
  pool_.queue().add(change.after->key(),
                    change.initial ? controller::Priority::kLow : controller::Priority::kFresh);
}

reconciler::RescueView RescueController::view(const CachedRescuePod& pod, const Memory& memory,
                                              const Rescuer::Look* look) {
  reconciler::RescueView view = rescuer_.view(pod, config_.owners, look);
  view.pod.freed = view.pod.freed || memory.freed;
  view.pod.is_going = view.pod.is_going || loop_.now() < memory.deleted_until;
  const auto held = static_cast<int>(membership_.held_shards().size());
  view.next_turn = allowance_.left(held, config_.shards, loop_.now());
  return view;
}

Task<controller::ReconcileResult> RescueController::reconcile(std::string key) {
  controller::ReconcileResult result;
  const RescuePodPtr pod = pods_.get(key);
  if (!pod) co_return result;
  const auto claim = membership_.claim(pod->uid);
  if (!claim) co_return result;
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  MemoryPtr& kept = memories_[pod->uid];
  if (!kept) kept = std::make_shared<Memory>();
  const MemoryPtr memory = kept;
  reconciler::RescueDecision decision = decide_rescue(view(*pod, *memory, nullptr));
  if (decision.action == RescueAction::kLook) {
    auto read = rescuer_.look(pod);
    const Result<Rescuer::Look> look = co_await read;
    if (!look && look.error().code == ErrorCode::kNotFound) {
      result.wake_after = reconciler::kRescueWindow;
      co_return result;
    }
    if (!look) {
      failed(*pod, look.error(), *memory);
      result.error = look.error();
      co_return result;
    }
    // Its change has queued it again.
    if (pods_.get(key) != pod) co_return result;
    decision = decide_rescue(view(*pod, *memory, &*look));
  }
  memory->held = decision.action == RescueAction::kHold;
  const bool acts =
      decision.action == RescueAction::kFree || decision.action == RescueAction::kDelete;
  if (!acts) memory->failing = false;
  if (decision.refusal) tell_refused(*pod, *decision.refusal, *memory);
  auto work = act(pod, decision.action, memory, *claim);
  const Result<> done = co_await work;
  if (!done) result.error = done.error();
  result.wake_after = decision.look_in;
  co_return result;
}

Task<Result<>> RescueController::act(RescuePodPtr pod, RescueAction action, MemoryPtr memory,
                                     controller::Gate::Claim claim) {
  if (action == RescueAction::kFree) {
    const SteadyTime asked = loop_.now();
    allowance_.freed(asked);
    memory->asked = true;
    auto write = rescuer_.free(pod, rescuer_.silence_of(*pod), claim);
    const Result<> freed = co_await write;
    if (!freed) {
      if (!freed.error().maybe_applied) allowance_.take_back(asked);
      failed(*pod, freed.error(), *memory);
      if (freed.error().code == ErrorCode::kNotFound) co_return Unit{};
      co_return freed.error();
    }
    memory->freed = true;
    action = RescueAction::kDelete;
  }
  if (action != RescueAction::kDelete) co_return Unit{};
  if (memory->asked && !memory->told) tell_freed(*pod, *memory);
  auto removal = rescuer_.remove(pod, claim);
  const Result<> removed = co_await removal;
  if (!removed) {
    failed(*pod, removed.error(), *memory);
    co_return removed.error();
  }
  memory->failing = false;
  memory->deleted_until = loop_.now() + reconciler::kDeletionLook;
  co_return Unit{};
}

// ---- What others hear of it.

void RescueController::record(const CachedRescuePod& pod, bool warning, const char* reason,
                              const char* action, const std::string& note) {
  events_.record({"v1", "Pod", pod.namespace_, pod.name, pod.uid}, warning, reason, action, note);
  const reconciler::PodOwner& owner = pod.pod.owner;
  if (owner.kind.empty() || owner.kind == "Node") return;
  events_.record({owner.api_version, owner.kind, pod.namespace_, owner.name, owner.uid}, warning,
                 reason, action, "pod " + pod.name + ": " + note);
}

void RescueController::tell_freed(const CachedRescuePod& pod, Memory& memory) {
  memory.told = true;
  const Duration silent = rescuer_.silence_of(pod);
  telemetry_.rescued(pod.namespace_, silent);
  log_.warn("a pod on a silent node is freed",
            {{"pod", pod.key()}, {"node", pod.pod.node}, {"silent", human_duration(silent)}});
  record(pod, /*warning=*/true, reconciler::kFreedReason, "Free",
         "node " + pod.pod.node + " has not renewed its Lease for " + human_duration(silent) +
             ", so the pod is freed for its controller to replace it");
}

void RescueController::tell_refused(const CachedRescuePod& pod, reconciler::RescueRefusal why,
                                    Memory& memory) {
  if (memory.refused == why) return;
  memory.refused = why;
  telemetry_.rescue_refused(to_string(why));
  record(pod, /*warning=*/true, "RescueRefused", "Refuse",
         "node " + pod.pod.node + " is silent, and the pod stays: " + explain(why, pod.pod.owner));
}

// A conflict is no failure: the pod has changed, and is judged again.
void RescueController::failed(const CachedRescuePod& pod, const Error& error, Memory& memory) {
  const ErrorCode code = error.code;
  if (code == ErrorCode::kConflict || code == ErrorCode::kCancelled ||
      code == ErrorCode::kNotFound) {
    return;
  }
  const bool is_news = !memory.failing;
  memory.failing = true;
  if (!is_news) return;
  log_.warn("a rescue fails; it is tried again", {{"pod", pod.key()}, {"error", error.message}});
  if (code != ErrorCode::kForbidden) return;
  record(pod, /*warning=*/true, "RescueFails", "Free",
         "the API server refuses to free the pod: " + error.message);
}

}  // namespace holdfast::rescue
