#include "operator/runtime/replica_metrics.h"

#include <set>

#include "operator/jobs/telemetry.h"
#include "operator/runtime/version.h"

namespace holdfast::runtime {

ReplicaMetrics::ReplicaMetrics(prometheus::Registry& registry)
    : watch_quiet_(gauges(registry, "holdfast_watch_quiet_seconds",
                          "Since the last byte on the kind's quietest watch.")),
      watch_live_(gauges(registry, "holdfast_watch_live", "1 while a watch of the kind is open.")),
      watch_closed_(gauges(registry, "holdfast_watch_closed_namespaces",
                           "Namespaces without an open watch of the kind.")),
      watch_unselected_(
          gauges(registry, "holdfast_watch_unselected",
                 "1 while the API server cannot select objects of the kind: all are watched.")),
      cached_(gauges(registry, "holdfast_cache_objects", "Objects of the kind in the cache.")),
      acting_(gauges(registry, "holdfast_member_acting",
                     "1 while this replica may act: its member Lease is renewed.")
                  .Add({})),
      renewal_age_(gauges(registry, "holdfast_member_renewal_age_seconds",
                          "Since the last acknowledged renewal of the member Lease was sent.")
                       .Add({})),
      members_(
          gauges(registry, "holdfast_members_alive", "Live members, as this replica sees them.")
              .Add({})),
      shards_held_(
          gauges(registry, "holdfast_shards_held", "Shards that this replica works on.").Add({})),
      shards_orphaned_(gauges(registry, "holdfast_shards_orphaned",
                              "Shards that no live member holds, as this replica sees them.")
                           .Add({})),
      guard_missing_(gauges(registry, "holdfast_guard_missing",
                            "1 while the policies of the guard are missing or changed.")
                         .Add({})),
      shard_moves_(counters(registry, "holdfast_shard_moves_total",
                            "Shards that came to this replica or left it, by how.")),
      events_dropped_(counters(registry, "holdfast_events_dropped_total",
                               "Events that were not written: too many, or refused.")
                          .Add({})) {
  for (const char* const how : jobs::kShardMoves) shard_moves_.Add({{"how", how}});
  gauges(registry, "holdfast_build_info", "1, with the version as a label.")
      .Add({{"version", kVersion}, {"compiler", "g++ " __VERSION__}})
      .Set(1);
}

void ReplicaMetrics::shard_moved(const std::string& how) {
  shard_moves_.Add({{"how", how}}).Increment();
}

void ReplicaMetrics::refresh_watches(const std::map<std::string, WatchState>& by_kind) {
  for (const auto& [kind, watch] : by_kind) {
    watch_quiet_.Add({{"kind", kind}}).Set(to_seconds(watch.quiet));
    watch_live_.Add({{"kind", kind}}).Set(watch.live ? 1 : 0);
    watch_closed_.Add({{"kind", kind}}).Set(watch.closed);
    watch_unselected_.Add({{"kind", kind}}).Set(watch.unselected ? 1 : 0);
    cached_.Add({{"kind", kind}}).Set(static_cast<double>(watch.objects));
  }
}

void ReplicaMetrics::refresh_ownership(const membership::OwnershipReport& report) {
  std::set<std::string> alive;
  for (const auto& member : report.members) {
    if (member.alive) alive.insert(member.name);
  }
  int held = 0;
  int orphaned = 0;
  for (const auto& shard : report.shards) {
    if (shard.held) ++held;
    if (alive.count(shard.holder) == 0) ++orphaned;
  }
  acting_.Set(report.state == membership::MembershipState::kActing ? 1 : 0);
  renewal_age_.Set(to_seconds(report.renewal_age));
  members_.Set(static_cast<double>(alive.size()));
  shards_held_.Set(held);
  shards_orphaned_.Set(orphaned);
}

void ReplicaMetrics::refresh_guard(bool is_missing) { guard_missing_.Set(is_missing ? 1 : 0); }

void ReplicaMetrics::refresh_events(std::uint64_t dropped) {
  raise_to(events_dropped_, static_cast<double>(dropped));
}

}  // namespace holdfast::runtime
