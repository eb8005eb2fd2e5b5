#include "operator/runtime/first_sync.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operator/runtime/sync_report.h"

namespace holdfast::runtime {
namespace {

constexpr std::chrono::minutes kSyncLimit{2};
// Long enough for the pages of long lists.
constexpr std::chrono::minutes kLongSyncLimit{10};
constexpr std::chrono::seconds kSyncReport{20};

bool caches_come(Work& work) {
  const auto informers = work.needed();
  return std::any_of(informers.begin(), informers.end(), [](const cache::Informer* informer) {
    return !informer->synced() && informer->quiet_for() < kSyncLimit;
  });
}

}  // namespace

FirstSync::Seen FirstSync::look(Work& work, SteadyTime now) {
  if (work.synced()) {
    const bool is_ready = !std::exchange(ready_, true);
    if (is_ready) log_.info("ready", {{"took", human_duration(now - began_)}});
    return {is_ready, std::nullopt};
  }
  const bool too_late = now - began_ >= (caches_come(work) ? kLongSyncLimit : kSyncLimit);
  if (!too_late && now - reported_ < kSyncReport) return {};
  reported_ = now;
  for (cache::Informer* const informer : work.needed()) {
    if (informer->live()) continue;
    const kube::Kind& kind = informer->kind();
    const Log::Fields fields = {
        {"cache", kind.name},
        {"reason", explain_unsynced({kind.group_path, kind.plural, informer->trouble()})}};
    if (too_late) {
      log_.error("a cache is not synced", fields);
    } else {
      log_.warn("a cache is not synced yet", fields);
    }
  }
  if (!too_late) return {};
  return {false, "the caches are not synced after " + human_duration(now - began_)};
}

}  // namespace holdfast::runtime
