#include "plugin/ui/screens.h"
#include "plugin/base/replica.h"

#include <algorithm>
#include <optional>

#include "api/docs_link.h"
#include "core/utf8.h"
#include "plugin/base/job_text.h"
#include "plugin/explain/advice.h"
#include "plugin/explain/gaps.h"
#include "plugin/explain/json_put.h"
#include "plugin/terminal/cells.h"
#include "plugin/ui/actions.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;

// The words of a group: why, and what to do, without the names of one job.
const char* kind_of(Rank rank) {
  switch (rank) {
    case Rank::kStalled:
      return "needs a person";
    case Rank::kLate:
      return "the operator is late";
    default:
      return "failed";
  }
}

constexpr const char* kLateAct =
    "The operator should have acted on these jobs already. Look whether its replicas run, and at "
    "their logs.";

// Texts of advice have gaps for one job. A sentence with one that nobody fills here is left out.
std::string act_of(const Advice& advice) {
  return fill_gaps(advice.act, {{"ns", "its namespace"},
                                {"queue", "of its queue"},
                                {"pool", "of its pool"},
                                {"node", "its node"}})
      .value_or("");
}

// All of them, as the table finds them.
std::string filter_of(const Cause& cause) {
  if (cause.rank == Rank::kLate) return "is:late";
  const std::string reason = cause.reason.empty() ? "" : " reason:" + cause.reason;
  return (cause.rank == Rank::kStalled ? "is:stalled" : "phase:Failed") + reason;
}

Json cause_json(const Cause& cause, Time now) {
  const AnyReason reason(cause.reason);
  const Advice& advice = advice_on(reason);
  Json json = {{"reason", cause.reason},
               {"kind", kind_of(cause.rank)},
               {"count", cause.count},
               {"filter", filter_of(cause)},
               {"jobs", Json::array()}};
  const bool is_late = cause.rank == Rank::kLate;
  json["what"] =
      is_late ? "the time of its next step is over, and nothing has happened" : advice.means;
  json["act"] = is_late ? std::string(kLateAct) : act_of(advice);
  const std::string_view heading = heading_of(cause.reason);
  if (!heading.empty()) json["link"] = api::reason_link(heading);
  put(json, "since", cause.oldest);
  put(json, "by", cause.deadline);
  for (const JobRowPtr& row : cause.some) json["jobs"].push_back(row_json(*row, now));
  return json;
}

// "media/night": of those that hold a permit, as reconciler::holds_permit() has it.
std::string queue_of_holder(const JobRow& row) {
  const bool holds = row.phase == "Running" || row.phase == "Cancelling";
  return holds && !row.queue.empty() ? row.namespace_ + "/" + row.queue.get() : "";
}

std::string pool_of_living(const JobRow& row) {
  return row.has_ended() || row.pool.empty() ? "" : row.namespace_ + "/" + row.pool.get();
}

// The Leases of its replicas.
std::vector<const Json*> members_of(const std::vector<Json>& leases) {
  std::vector<const Json*> members;
  for (const Json& lease : leases) {
    if (is_replica(lease)) members.push_back(&lease);
  }
  return members;
}

Json rows_json(const std::vector<JobRowPtr>& rows, Time now) {
  Json json = Json::array();
  for (const JobRowPtr& row : rows) json.push_back(row_json(*row, now));
  return json;
}

}  // namespace

Json row_json(const JobRow& row, Time now) {
  Json json = {{"ns", row.namespace_},
               {"name", row.name},
               {"uid", row.uid},
               {"phase", row.phase},
               {"attempt", row.attempt},
               {"failures", row.failures},
               {"rank", static_cast<int>(rank_of(row, now))},
               {"ended", row.has_ended()}};
  if (row.stalled) json["stalled"] = true;
  put(json, "reason", row.waiting);
  put(json, "message", row.message);
  put(json, "stage", row.stage);
  put(json, "queue", row.queue);
  put(json, "pool", row.pool);
  put(json, "place", row.place);
  put(json, "completions", row.completions);
  put(json, "created", row.created);
  put(json, "since", row.since);
  put(json, "by", row.deadline);
  return json;
}

Json jobs_screen(const JobTable& table, const JobQuery& query, Time now) {
  const JobView view = table.view(query, now);
  Json phases = Json::object();
  for (const auto& [phase, count] : table.phases()) phases[phase.empty() ? "new" : phase] = count;
  return {{"matching", view.matching},
          {"total", table.size()},
          {"offset", query.offset},
          {"phases", phases},
          {"rows", rows_json(view.rows, now)}};
}

Json needs_screen(const JobTable& table, const Surroundings& around, Time now) {
  Json json = {{"causes", Json::array()}, {"places", Json::array()}, {"total", table.size()}};
  for (const Cause& cause : table.causes(now)) json["causes"].push_back(cause_json(cause, now));
  const bool is_dead =
      around.leases && std::ranges::none_of(members_of(*around.leases), [&](const Json* one) {
        return replica_lives(*one, around.read_at);
      });
  if (is_dead) {
    json["places"].push_back(
        {{"screen", "operator"},
         {"what",
          "No replica of the operator renews its Lease: nothing starts, and nothing that is "
          "lost is replaced"},
         {"act", kLateAct}});
  }
  for (const Json& pool : around.pools) {
    for (const Json& condition : at(at(pool, "status"), "conditions")) {
      if (string_at(condition, "type") != "Stalled" || string_at(condition, "status") != "True")
        continue;
      const AnyReason reason(clean_at(condition, "reason"));
      json["places"].push_back(
          {{"screen", "pools"},
           {"what", "The pool " + clean_at(at(pool, "metadata"), "namespace") + "/" +
                        clean_at(at(pool, "metadata"), "name") +
                        " has no workers for its jobs: " + clean_at(condition, "message")},
           {"act", act_of(advice_on(reason))}});
    }
  }
  return json;
}

Json job_screen(const Model& model, const ExplainFacts& facts, Time now) {
  constexpr std::size_t kMostEvents = 50;
  Json json = {{"model", to_json(model, now)}, {"events", Json::array()}};
  const Json& spec = at(facts.job, "spec");
  json["suspended"] = bool_at(spec, "suspend");
  json["priority"] = int_at(at(spec, "queue"), "priority");
  std::vector<std::pair<Time, Json>> events;
  for (const Json& event : facts.events) {
    auto time = moment_at(event, "lastTimestamp");
    if (!time) time = moment_at(event, "eventTime");
    if (!time) time = moment_at(event, "firstTimestamp");
    Json one = {
        {"type", clean_at(event, "type")},
        {"reason", clean_at(event, "reason")},
        {"count", int_at(event, "count", 1)},
        {"note",
         clean_text(api::without_reason_link(string_at(event, "note", string_at(event, "message"))),
                    2048)}};
    put(one, "time", time);
    events.emplace_back(time.value_or(Time{}), std::move(one));
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  events.resize(std::min(events.size(), kMostEvents));
  for (auto& [time, event] : events) json["events"].push_back(std::move(event));
  return json;
}

Json queues_screen(const std::vector<Json>& queues, const JobTable& table, Time now,
                   const std::string& where) {
  Json json = {{"queues", Json::array()}};
  JobTable::Groups holders = table.grouped(queue_of_holder, now);
  for (const Json& queue : queues) {
    const Json& spec = at(queue, "spec");
    const Json& status = at(queue, "status");
    const std::string namespace_ = clean_at(at(queue, "metadata"), "namespace");
    const std::string name = clean_at(at(queue, "metadata"), "name");
    Json one = {{"ns", namespace_},
                {"name", name},
                {"hold", bool_at(spec, "hold")},
                {"concurrency", int_at(spec, "concurrency")},
                {"running", int_at(status, "running")},
                {"waiting", int_at(status, "waiting")},
                {"waiters", Json::array()},
                {"holders", rows_json(holders[namespace_ + "/" + name], now)}};
    if (bool_at(spec, "hold")) {
      one["command"] =
          in_cluster("kubectl patch jq " + shell_word(name) + " -n " + shell_word(namespace_) +
                         " --type=merge -p '{\"spec\":{\"hold\":false}}'",
                     where);
    }
    // Its owner's order.
    for (const Json& head : at(status, "head")) {
      const JobRowPtr row =
          head.is_string() ? table.find(namespace_, head.get<std::string>()) : nullptr;
      if (row) one["waiters"].push_back(row_json(*row, now));
    }
    put(one, "oldest", moment_at(status, "oldestWaitingSince"));
    for (const Json& condition : at(status, "conditions")) {
      if (string_at(condition, "type") != "Admitting") continue;
      if (string_at(condition, "status") == "True") continue;
      put(one, "reason", clean_at(condition, "reason"));
      put(one, "message", clean_at(condition, "message"));
    }
    json["queues"].push_back(std::move(one));
  }
  return json;
}

Json pools_screen(const std::vector<Json>& pools, const JobTable& table, Time now) {
  Json json = {{"pools", Json::array()}};
  JobTable::Groups living = table.grouped(pool_of_living, now);
  for (const Json& pool : pools) {
    const Json& status = at(pool, "status");
    const std::string namespace_ = clean_at(at(pool, "metadata"), "namespace");
    const std::string name = clean_at(at(pool, "metadata"), "name");
    Json one = {{"ns", namespace_},
                {"name", name},
                {"most", int_at(at(pool, "spec"), "maxWorkers", 10)},
                {"workers", int_at(status, "workers")},
                {"starting", int_at(status, "starting")},
                {"draining", int_at(status, "draining")},
                {"slots", int_at(status, "slots")},
                {"busySlots", int_at(status, "busySlots")},
                {"waiting", int_at(status, "waiting")},
                {"failedStarts", int_at(status, "failedStarts")},
                {"jobs", Json::array()}};
    put(one, "message", clean_at(status, "message"));
    one["jobs"] = rows_json(living[namespace_ + "/" + name], now);
    json["pools"].push_back(std::move(one));
  }
  return json;
}

Json operator_screen(const std::vector<Json>& leases, const JobTable& table, Time now) {
  std::map<std::string, int> shards;
  std::int64_t unowned = 0;
  std::int64_t seen = 0;    // shards that have a Lease
  std::int64_t wanted = 1;  // shards of the installation, as its members say
  Json replicas = Json::array();
  const std::vector<const Json*> members = members_of(leases);
  for (const Json& lease : leases) {
    const std::string holder = clean_at(at(lease, "spec"), "holderIdentity");
    if (!is_replica(lease)) {
      ++seen;
      if (holder.empty()) {
        ++unowned;
      } else {
        ++shards[holder];
      }
    }
  }
  int alive = 0;
  for (const Json* const lease : members) {
    const Json& spec = at(*lease, "spec");
    const std::string holder = clean_at(spec, "holderIdentity");
    const auto renewed = moment_at(spec, "renewTime");
    const bool lives = replica_lives(*lease, now);
    if (lives) ++alive;
    Json one = {{"name", holder},
                {"ns", clean_at(at(*lease, "metadata"), "namespace")},
                {"alive", lives},
                {"shards", shards[holder]}};
    put(one, "renewed", renewed);
    replicas.push_back(std::move(one));
    if (lives) shards.erase(holder);
    wanted = std::max<std::int64_t>(wanted, shards_of(*lease));
  }
  // Those of replicas that do not live.
  for (const auto& [holder, count] : shards) unowned += count;
  unowned = std::max<std::int64_t>(unowned, wanted - seen);
  std::size_t late = 0;
  for (const Cause& cause : table.causes(now)) late += cause.rank == Rank::kLate ? cause.count : 0;
  const auto lamp = [](const char* name, bool good, const std::string& text) {
    return Json{{"name", name}, {"good", good}, {"text", text}};
  };
  return {
      {"replicas", replicas},
      {"lamps",
       {lamp("A replica acts", alive > 0,
             std::to_string(alive) + " of " + std::to_string(members.size()) +
                 " replicas renew their Leases"),
        lamp("Each shard has a living replica", unowned == 0,
             unowned == 0 ? "all shards have one" : std::to_string(unowned) + " shards have none"),
        lamp("No job is late", late == 0,
             late == 0 ? "each job is within its bound"
                       : std::to_string(late) + " jobs are past the time of their next step")}}};
}

}  // namespace holdfast::plugin
