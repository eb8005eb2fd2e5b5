// Where a job waits with others: its queue and the pool of its workers.
#include <algorithm>

#include "plugin/explain/parts.h"
#include "reconciler/queue/line.h"
#include "reconciler/types.h"

namespace holdfast::plugin {
namespace {

using reconciler::Line;
using reconciler::QueuedJob;

bool says_queued(const JobText& job) {
  return job.waiting && (job.waiting->reason == "Queued" || job.waiting->reason == "QueueMissing");
}

// The queue no longer counts it.
bool is_over(const Json& json) {
  return read_job(json).has_ended() ||
         !string_at(at(json, "metadata"), "deletionTimestamp").empty();
}

// As the owner of the queue sees the job.
QueuedJob queued_job(const Json& json) {
  const JobText job = read_job(json);
  const auto phase = reconciler::parse_phase(job.phase);
  QueuedJob queued;
  queued.uid = job.uid;
  queued.name = job.name;
  queued.key = string_at(at(at(json, "spec"), "queue"), "key");
  queued.priority = int_at(at(at(json, "spec"), "queue"), "priority");
  queued.created = job.created.value_or(Time{});
  queued.attempt = job.attempt;
  queued.holds = phase && reconciler::holds_permit(*phase);
  queued.waits = job.phase.empty() || says_queued(job);
  return queued;
}

// Its place among all that wait; 0: it is not known.
struct Place {
  std::size_t place = 0;
  std::size_t of = 0;
  std::int64_t key_holds = 0;  // permits of jobs with its key
};

Place place_in(const Explaining& explaining) {
  const JobText& job = explaining.job;
  Place place;
  Line line;
  const std::string key = string_at(at(at(explaining.facts.job, "spec"), "queue"), "key");
  for (const Json& other : explaining.facts.queue_jobs) {
    if (string_at(at(at(other, "spec"), "queue"), "name") != job.queue || is_over(other)) continue;
    QueuedJob queued = queued_job(other);
    if (queued.holds && queued.key == key) ++place.key_holds;
    line.put(std::move(queued));
  }
  std::vector<std::string> names = line.head(explaining.facts.queue_jobs.size());
  if (explaining.facts.queue_jobs.empty()) {
    for (const Json& name : at(at(explaining.facts.queue, "status"), "head")) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  const auto found = std::find(names.begin(), names.end(), job.name);
  if (found != names.end()) place.place = static_cast<std::size_t>(found - names.begin()) + 1;
  place.of = std::max<std::size_t>(
      names.size(), static_cast<std::size_t>(std::max<std::int64_t>(
                        0, int_at(at(explaining.facts.queue, "status"), "waiting"))));
  return place;
}

std::string limits_of(const Explaining& explaining, const Place& place) {
  const Json& spec = at(explaining.facts.queue, "spec");
  const Json& status = at(explaining.facts.queue, "status");
  std::string text;
  if (const std::int64_t most = int_at(spec, "concurrency"); most > 0) {
    text +=
        "; " + count_text(int_at(status, "running")) + " of " + plural(most, "permit") + " in use";
  }
  const Json& own = at(at(explaining.facts.job, "spec"), "queue");
  if (const std::int64_t most = int_at(spec, "concurrencyPerKey"); most > 0) {
    const std::string key = clean_at(own, "key");
    text += "; its key " + (key.empty() ? "(none)" : key);
    if (!explaining.facts.queue_jobs.empty()) {
      text += " has " + count_text(place.key_holds) + " of " + count_text(most);
    } else {
      text += " may have " + count_text(most);
    }
  }
  if (const std::int64_t priority = int_at(own, "priority"); priority != 0) {
    text += "; priority " + std::to_string(priority);
  }
  return text;
}

// Why the queue starts no further job.
std::string reason_of(const Json& queue) {
  if (bool_at(at(queue, "spec"), "hold")) return "The queue is held (spec.hold): nothing starts.";
  for (const Json& condition : at(at(queue, "status"), "conditions")) {
    if (string_at(condition, "type") != "Admitting") continue;
    if (string_at(condition, "status") == "True") return "";
    return clean_at(condition, "reason") + ": " + clean_at(condition, "message");
  }
  return "";
}

}  // namespace

bool is_key_full(const Explaining& explaining) {
  const std::int64_t most = int_at(at(explaining.facts.queue, "spec"), "concurrencyPerKey");
  return most > 0 && place_in(explaining).key_holds >= most;
}

void add_queue(const Explaining& explaining, Facts& facts) {
  const JobText& job = explaining.job;
  if (job.queue.empty() || !says_queued(job) || !explaining.facts.queue.is_object()) return;
  const Place place = place_in(explaining);
  std::string text = job.queue + ": ";
  if (place.place > 0) {
    text += "place " + count_text(static_cast<std::int64_t>(place.place)) + " of " +
            count_text(static_cast<std::int64_t>(place.of)) + " that wait";
  } else {
    text +=
        "behind the first 100 of " + count_text(static_cast<std::int64_t>(place.of)) + " that wait";
  }
  add_fact("queue", "Queue", text + limits_of(explaining, place), facts);
  add_more(reason_of(explaining.facts.queue), facts);
}

void add_pool(const Explaining& explaining, Facts& facts) {
  const JobText& job = explaining.job;
  const Json& status = at(explaining.facts.pool, "status");
  const bool waits = job.waiting && (job.waiting->reason == "WorkerAwaited" ||
                                     job.waiting->reason == "AwaitsEmptyWorker");
  if (!waits || !status.is_object()) return;
  const std::int64_t starting = int_at(status, "starting");
  std::string text = job.pool + ": " + plural(int_at(status, "workers"), "worker") +
                     " of at most " +
                     count_text(int_at(at(explaining.facts.pool, "spec"), "maxWorkers", 10));
  if (starting > 0) text += ", " + count_text(starting) + " starting";
  text += "; " + count_text(int_at(status, "busySlots")) + " of " +
          plural(int_at(status, "slots"), "slot") + " busy; " +
          plural(int_at(status, "waiting"), "run") + " waiting";
  add_fact("pool", "Pool", text, facts);
  if (const std::int64_t failed = int_at(status, "failedStarts"); failed > 0) {
    add_more(failed == 1 ? "the last worker could not start"
                         : plural(failed, "worker") + " in a row could not start",
             facts);
  }
  add_more(clean_at(status, "message"), facts);
}

}  // namespace holdfast::plugin
