#include "operator/observe/heartbeat_monitor.h"

#include <utility>

#include "client/kube/lease_resource.h"
#include "reconciler/names.h"

namespace holdfast::observe {
namespace {

kube::Kind heartbeat_kind() {
  kube::Kind kind;
  kind.name = "job-leases";
  kind.group_path = kube::kLeaseGroupPath;
  kind.plural = kube::kLeasePlural;
  kind.label_selector = reconciler::kJobUidLabel;
  kind.decode = codecs::decode_heartbeat;
  return kind;
}

// The index of Leases by the key of their job.
constexpr const char* kByOwner = "job";

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(const cache::Informer::Dependencies& dependencies,
                                   const std::vector<std::string>& namespaces, WorkedOn worked_on,
                                   reconciler::RecordTracker::Elsewhere elsewhere)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      leases_(dependencies, heartbeat_kind(), namespaces),
      worked_on_(std::move(worked_on)),
      records_(namespaces, std::move(elsewhere)) {
  cached().add_index(kByOwner, [](const codecs::CachedHeartbeat& lease) {
    return std::vector<std::string>{lease.namespace_ + "/" + lease.job_name};
  });
  leases_.on_progress([this] { update_clock(); });
  cached().on_change([this](const auto& change) {
    update_clock();
    if (change.after) {
      seen(*change.after);
    } else {
      records_.gone(change.before->key());
    }
    if (on_change_) on_change_(change.before, change.after);
  });
}

void HeartbeatMonitor::on_change(
    std::function<void(const codecs::HeartbeatPtr&, const codecs::HeartbeatPtr&)> handler) {
  on_change_ = std::move(handler);
}

void HeartbeatMonitor::update_clock() {
  records_.watch([this](const std::string& watched) { return leases_.live(watched); }, loop_.now());
}

void HeartbeatMonitor::proof() {
  update_clock();
  records_.proof(loop_.now());
}

void HeartbeatMonitor::seen(const codecs::CachedHeartbeat& lease) {
  records_.seen(lease, worked_on_(lease), loop_.now());
}

void HeartbeatMonitor::look_again(const std::string& namespace_, const std::string& lease) {
  const codecs::HeartbeatPtr found = cached().get(namespace_ + "/" + lease);
  if (!found) return;
  update_clock();
  seen(*found);
}

void HeartbeatMonitor::look_again_at_all(const std::string& namespace_, const std::string& job) {
  const std::vector<codecs::HeartbeatPtr> leases = of_job(namespace_, job);
  if (!leases.empty()) update_clock();
  for (const codecs::HeartbeatPtr& lease : leases) seen(*lease);
}

codecs::HeartbeatPtr HeartbeatMonitor::get(const std::string& namespace_, const std::string& lease,
                                           const std::string& job_uid) {
  const auto found = cached().get(namespace_ + "/" + lease);
  return found && found->owner_uid == job_uid ? found : nullptr;
}

std::vector<codecs::HeartbeatPtr> HeartbeatMonitor::of_job(const std::string& namespace_,
                                                           const std::string& job) {
  return cached().by_index(kByOwner, namespace_ + "/" + job);
}

reconciler::LeaseObservation HeartbeatMonitor::observe(const codecs::CachedHeartbeat& lease,
                                                       Duration window, const LookTimes& asked) {
  update_clock();
  return records_.observe(lease, window, loop_.now(), asked);
}

Duration HeartbeatMonitor::live_now(const std::string& namespace_) {
  update_clock();
  return records_.live_now(namespace_, loop_.now());
}

bool HeartbeatMonitor::unheard_since_gap(const codecs::CachedHeartbeat& lease) {
  update_clock();
  return records_.unheard_since_gap(lease.key(), loop_.now());
}

Task<Result<codecs::HeartbeatPtr>> HeartbeatMonitor::confirm(std::string namespace_,
                                                             std::string lease, std::string job_uid,
                                                             SteadyTime by) {
  auto get =
      client_.get(kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, namespace_, lease),
                  kube::live_look(by, loop_.now()));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) {
    if (answer.error().code == ErrorCode::kNotFound) co_return codecs::HeartbeatPtr();
    co_return answer.error();
  }
  const codecs::HeartbeatPtr live = codecs::decode_heartbeat(*answer);
  if (!live || live->owner_uid != job_uid) co_return codecs::HeartbeatPtr();
  update_clock();
  const codecs::HeartbeatPtr known = cached().get(live->key());
  if (!known || known->version < live->version) seen(*live);
  co_return live;
}

}  // namespace holdfast::observe
