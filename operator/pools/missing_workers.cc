#include "operator/pools/missing_workers.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "client/kube/lease_resource.h"
#include "client/kube/object.h"

namespace holdfast::pools {
namespace {

using kube::namespace_of;

// A Lease may be there that no cache shows. It cannot come back, so one read is enough.
constexpr std::chrono::seconds kReadMissing{5};
// Jobs whose worker is missing are looked at this often, until their records have moved on.
constexpr std::chrono::seconds kMissingPause{5};

}  // namespace

Duration MissingWorkers::missing_for(const std::string& ns, const std::string& lease_uid) const {
  return deps_.times.missing_for(ns + "/" + lease_uid, deps_.loop.now());
}

void MissingWorkers::watch() {
  for (const auto& [key, pool] : deps_.known.pools()) {
    const std::string ns = namespace_of(key);
    if (deps_.caches.leases->version(ns) == 0) continue;
    for (const std::string& uid : pool->book.workers().missing()) missing_for(ns, uid);
  }
}

// Its agent's own deadlines come first.
bool MissingWorkers::is_over(const Pool* pool, const std::string& ns,
                             const std::string& lease_uid) const {
  const Duration after =
      pool ? pool->book.workers().of(lease_uid).lease_duration() : WorkerSlots::kLongestDuration;
  if (missing_for(ns, lease_uid) < after) return false;
  return !pool || pool->missing.known_gone.count(lease_uid) > 0;
}

Task<Result<>> MissingWorkers::read(std::string key, KnownPool pool) {
  const std::string ns = namespace_of(key);
  std::set<std::string>& known_gone = pool->missing.known_gone;
  std::set<std::string> wanted;
  for (const std::string& uid : pool->book.workers().missing()) {
    const bool is_due = missing_for(ns, uid) >= kReadMissing;
    if (is_due && known_gone.count(uid) == 0) wanted.insert(uid);
  }
  if (wanted.empty()) co_return Unit{};
  auto get = deps_.client.get(kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, ns));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  std::set<std::string> found;
  for (const JsonView item : holdfast::at(*answer, "items")) {
    const std::string uid = string_at(holdfast::at(item, "metadata"), "uid");
    if (wanted.count(uid) == 0) continue;
    found.insert(uid);
    const auto lease = decode_worker_lease(item);
    if (!lease) continue;
    auto ours = std::make_shared<CachedWorkerLease>(*lease);
    ours->pool_name = key.substr(ns.size() + 1);
    tracker_.show_lease(std::move(ours), /*is_own=*/true);
  }
  for (const std::string& uid : wanted) {
    if (found.count(uid) == 0) known_gone.insert(uid);
  }
  co_return Unit{};
}

std::optional<Duration> MissingWorkers::look(const std::string& key, Pool& pool) {
  std::optional<Duration> next;
  const std::string ns = namespace_of(key);
  const std::vector<std::string> missing = pool.book.workers().missing();
  const auto is_there = [&](const std::string& uid) {
    return std::find(missing.begin(), missing.end(), uid) == missing.end();
  };
  auto& [known_gone, reported] = pool.missing;
  std::erase_if(reported, is_there);
  std::erase_if(known_gone, [&](const std::string& uid) {
    if (is_there(uid)) deps_.times.found(ns + "/" + uid);
    return is_there(uid);
  });
  for (const std::string& uid : missing) {
    const bool is_reported = reported.count(uid) != 0;
    const WorkerSlots& slots = pool.book.workers().of(uid);
    if (is_reported && slots.open.empty()) continue;
    const bool is_read = known_gone.count(uid) > 0;
    const Duration limit = is_read ? slots.lease_duration() : kReadMissing;
    const Duration left = limit - missing_for(ns, uid);
    const Duration wait = left > Duration::zero() ? left : Duration(kMissingPause);
    next = std::min(next.value_or(wait), wait);
    if (left > Duration::zero() || !is_read) continue;
    reported.insert(uid);
    const auto look = [&](const WorkerSlots::Places& places) {
      for (const auto& [id, place] : places) {
        deps_.looks.look_at_job(ns + "/" + place.job_name, controller::Priority::kFresh);
      }
    };
    look(slots.open);
    if (!is_reported) look(slots.closed);
  }
  return next;
}

}  // namespace holdfast::pools
