#include "operator/controller/heartbeat_monitor.h"

#include <algorithm>

#include "operator/controller/lease_codec.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

kube::Kind heartbeat_kind() {
  kube::Kind kind;
  kind.name = "job-leases";
  kind.group_path = kLeaseGroupPath;
  kind.plural = kLeasePlural;
  kind.label_selector = reconciler::kJobUidLabel;
  kind.decode = decode_heartbeat;
  return kind;
}

HeartbeatPtr as_heartbeat(const kube::ObjectPtr& object) {
  return std::static_pointer_cast<const CachedHeartbeat>(object);
}

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(const cache::Informer::Dependencies& dependencies,
                                   std::vector<std::string> namespaces)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      leases_(dependencies, heartbeat_kind(), std::move(namespaces)) {
  leases_.on_progress([this] { update_clock(); });
  leases_.on_change([this](const cache::Change& change) {
    update_clock();
    if (change.after) {
      seen(*as_heartbeat(change.after));
    } else {
      tracker_.gone(change.before->key());
      marks_.erase(change.before->key());
    }
    if (on_change_) on_change_(as_heartbeat(change.before), as_heartbeat(change.after));
  });
}

void HeartbeatMonitor::on_change(
    std::function<void(const HeartbeatPtr&, const HeartbeatPtr&)> handler) {
  on_change_ = std::move(handler);
}

void HeartbeatMonitor::update_clock() {
  clock_.watch(leases_.synced() && leases_.live(), loop_.now());
}

void HeartbeatMonitor::proof() {
  update_clock();
  clock_.proof(loop_.now());
}

void HeartbeatMonitor::seen(const CachedHeartbeat& lease) {
  const Duration live = clock_.read(loop_.now());
  const auto [found, added] = marks_.try_emplace(lease.key());
  Marks& marks = found->second;
  if (!lease.lease.holder.empty()) {
    marks.taken_for = 0;
  } else if (marks.taken_for != lease.lease.attempt) {
    marks.taken_for = lease.lease.attempt;
    marks.taken = loop_.now();
  }
  if (added || marks.holder != lease.lease.holder) {
    marks.holder = lease.lease.holder;
    marks.progress = lease.mark;
    marks.progressed = live;
    tracker_.gone(lease.key());
  } else if (marks.progress != lease.mark) {
    marks.progress = lease.mark;
    marks.progressed = std::max(marks.progressed, live - lease.lease.progress_age);
  }
  if (!lease.lease.ended) {
    marks.ended.reset();
  } else if (!marks.ended) {
    marks.ended = loop_.now();
  }
  // Only what is being renewed can fall silent, alone or with others.
  if (lease.lease.holder.empty() || !lease.lease.renewed || lease.lease.ended) {
    tracker_.gone(lease.key());
  } else {
    tracker_.seen(lease.key(), lease.version, live);
  }
}

HeartbeatPtr HeartbeatMonitor::get(const std::string& namespace_, const std::string& job_uid) {
  const auto found = as_heartbeat(
      leases_.store().get(namespace_ + "/" + reconciler::heartbeat_lease_name(job_uid)));
  return found && found->owner_uid == job_uid ? found : nullptr;
}

reconciler::LeaseObservation HeartbeatMonitor::observe(const CachedHeartbeat& lease,
                                                       Duration window) {
  update_clock();
  const SteadyTime now = loop_.now();
  const Duration live = clock_.read(now);
  reconciler::LeaseObservation observation;
  const auto marks = marks_.find(lease.key());
  if (marks == marks_.end()) return observation;
  if (marks->second.taken_for == lease.lease.attempt) {
    observation.taken_for = now - marks->second.taken;
  }
  if (marks->second.ended) observation.ended_for = now - *marks->second.ended;
  observation.stalled_for =
      std::max(Duration::zero(), live - std::max(marks->second.progressed, clock_.epoch()));
  observation.silent_for =
      tracker_.silent_for(lease.key(), live, clock_.epoch()).value_or(Duration::zero());
  observation.breaker = tracker_.held_back(lease.key(), window, live, clock_.epoch());
  return observation;
}

Task<Result<HeartbeatPtr>> HeartbeatMonitor::confirm(std::string namespace_, std::string job_uid) {
  auto get = client_.get(kube::object_path(kLeaseGroupPath, kLeasePlural, namespace_,
                                           reconciler::heartbeat_lease_name(job_uid)));
  const Result<Json> answer = co_await get;
  if (!answer) {
    if (answer.error().code == ErrorCode::kNotFound) co_return HeartbeatPtr();
    co_return answer.error();
  }
  const HeartbeatPtr live = as_heartbeat(decode_heartbeat(*answer));
  if (!live || live->owner_uid != job_uid) co_return HeartbeatPtr();
  update_clock();
  const kube::ObjectPtr cached = leases_.store().get(live->key());
  if (!cached || cached->version < live->version) seen(*live);
  co_return live;
}

}  // namespace holdfast::controller
