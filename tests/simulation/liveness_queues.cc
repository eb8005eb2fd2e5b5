// Liveness of queues: a free permit goes to the next job within the time of any reconcile, also
// after a replica has died that held the queue (class "permit lost": T + R). What is said of a
// queue is not older than its refresh.
#include <algorithm>

#include "reconciler/job/edges.h"
#include "reconciler/queue/admission.h"
#include "tests/simulation/liveness_job.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using reconciler::Phase;
using std::chrono::seconds;

constexpr const char* kOldNumbers = "what its queue's status says is old";

bool says_queued(const std::string& reason) {
  return reason == "Queued" || reason == "QueueMissing";
}

// It waits for its queue alone, as its status says.
bool waits(const Permits::Job& job) {
  return job.waits_for == "Queued" && !job.over && !job.stands && !Permits::runs(job);
}

// It may ask at any moment, or may have asked.
bool may_wait(const Permits::Job& job) {
  return !job.over && !job.stands && !Permits::runs(job) && job.phase != "Suspended";
}

}  // namespace

// A job with a queue that could start says that it waits.
void Liveness::look_at_asking(const Job& job) {
  const reconciler::Status& status = job.job.status;
  const reconciler::Spec& spec = job.job.spec;
  if (spec.suspend || spec.cancel || spec.parallelism == 0) return;
  const Permits::Job* const known = ledger_.permits().job(job.job.uid);
  if (!known || says_queued(known->waits_for) || ledger_.permits().is_admitted(*known)) return;
  const bool is_strict = spec.pod_replacement == reconciler::PodReplacementPolicy::kFailed;
  const bool old_lives =
      std::any_of(job.pods.begin(), job.pods.end(), [](const auto& pod) { return !pod.ended(); });
  if (is_strict && old_lives) return;
  const bool runs_on = std::any_of(status.runs.begin(), status.runs.end(),
                                   [&](const auto& run) { return !is_empty_place(job, run); });
  if (runs_on) return;
  Duration due{0};
  for (const reconciler::Run& run : status.runs) {
    const Duration its = std::max(instant(run.next_attempt_time), Duration(1));
    due = due == Duration::zero() ? its : std::min(due, its);
  }
  if (due > scheduler_.now()) return;
  holds(job, "it could start, and does not ask its queue",
        kServerTime + late(spec.retry_backoff.max) + kQueueNotice);
}

void Liveness::look_at_queues() {
  static const auto* const none = new Permits::Queue();
  const auto& queues = ledger_.permits().queues();
  const auto lines = ledger_.permits().lines();
  for (const auto& [name, line] : lines) {
    const auto queue = queues.find(name);
    look_at_words(queue == queues.end() ? *none : queue->second, line);
  }
  for (const auto& [name, queue] : queues) {
    if (queue.uid.empty()) continue;
    const auto line = lines.find(name);
    look_at_admissions(name, queue, line == lines.end() ? Line() : line->second);
    look_at_numbers(name, queue, line == lines.end() ? Line() : line->second);
  }
}

// A job knows whether its queue is there.
void Liveness::look_at_words(const Permits::Queue& queue, const Line& line) {
  for (const Permits::Job* const job : line) {
    if (job->over || job->stands) continue;
    const std::string key = job->namespace_ + "/" + job->name + "#" + std::to_string(job->attempt);
    if (job->waits_for == "Queued" && queue.uid.empty()) {
      note(key, "its queue is missing, and it does not say so", Duration::zero(), std::nullopt);
    }
    if (job->waits_for == "QueueMissing" && !queue.uid.empty()) {
      note(key, "it says that its queue is missing", Duration::zero(), std::nullopt);
    }
  }
}

// What the record says, in the server's time as the slowest replica knows it.
bool Liveness::has_token(const Permits::Queue& queue) const {
  const Json& rate = at(queue.spec, "rate");
  const Json& recorded = at(queue.status, "rate");
  if (!rate.is_object() || !recorded.is_object() || int_at(recorded, "tokens") > 0) return true;
  const auto since = parse_time(string_at(recorded, "time"));
  const Duration each = Duration(seconds(int_at(rate, "periodSeconds"))) / int_at(rate, "jobs");
  return !since || gateway_.wall_clock() - *since > each + kServerTime + late(each);
}

void Liveness::look_at_admissions(const std::string& name, const Permits::Queue& queue,
                                  const Line& line) {
  const Permits& permits = ledger_.permits();
  for (const Permits::Job* const job : line) {
    if (job->over || !permits.is_admitted(*job)) continue;
    const bool rests = job->stands || (lacks_pool(job->uid) && !Permits::runs(*job));
    if (!rests && lacks_slot(job->uid)) continue;
    const std::string key = job->namespace_ + "/" + job->name + "#" + std::to_string(job->attempt);
    note(key, rests ? "its admission is not given back" : "it is admitted and does not start",
         Duration::zero(), std::nullopt);
  }
  const auto limit = [&](const char* field) { return int_at(queue.spec, field, INT64_MAX); };
  if (bool_at(queue.spec, "hold") || permits.used_at_most(name) >= limit("concurrency")) return;
  if (queue.admitting.size() >= reconciler::kAdmissionLimit || !has_token(queue)) return;
  const auto first = std::find_if(line.begin(), line.end(), [&](const Permits::Job* job) {
    return waits(*job) && !permits.is_admitted(*job) &&
           permits.used_at_most(name, &job->key) < limit("concurrencyPerKey");
  });
  if (first == line.end()) return;
  note(name + " " + (*first)->name + "#" + std::to_string((*first)->attempt),
       "a permit is free, and a job waits", Duration::zero(), std::nullopt);
}

void Liveness::look_at_numbers(const std::string& name, const Permits::Queue& queue,
                               const Line& line) {
  for (const std::string& what : old_numbers(name, queue, line)) {
    note(name + " " + what, kOldNumbers, reconciler::kQueueRefresh, std::nullopt);
  }
}

// A number that was right when it was written is as old as that write, even if it was right for a
// moment only.
void Liveness::queue_written(const std::string& name) {
  const auto queue = ledger_.permits().queues().find(name);
  if (!on_ || queue == ledger_.permits().queues().end() || queue->second.uid.empty()) return;
  const auto old = old_numbers(name, queue->second, ledger_.permits().lines()[name]);
  std::erase_if(troubles_, [&](const auto& entry) {
    const std::string& key = entry.first;
    if (!key.starts_with(name + " ") || !key.ends_with(kOldNumbers)) return false;
    return std::none_of(old.begin(), old.end(), [&](const std::string& what) {
      return key == name + " " + what + " " + kOldNumbers;
    });
  });
}

std::vector<std::string> Liveness::old_numbers(const std::string& name, const Permits::Queue& queue,
                                               const Line& line) const {
  std::vector<std::string> old;
  const Permits& permits = ledger_.permits();
  const auto is_old = [&](const std::string& what) { old.push_back(what); };
  // Of a pod that is lost nobody is sure.
  const bool sure = std::none_of(line.begin(), line.end(), [](const Permits::Job* job) {
    return !Permits::runs(*job) && job->may_outlast();
  });
  const std::int64_t running = permits.used_at_most(name);
  if (sure && int_at(queue.status, "running") != running) {
    is_old("running is not " + std::to_string(running));
  }
  std::int64_t least = 0, most = 0;
  for (const Permits::Job* const job : line) {
    if (permits.is_admitted(*job) || job->may_outlast()) continue;
    least += waits(*job) ? 1 : 0;
    most += may_wait(*job) ? 1 : 0;
  }
  const std::int64_t waiting = int_at(queue.status, "waiting");
  if (sure && (waiting < least || waiting > most)) {
    is_old("waiting is not " + std::to_string(least) + " to " + std::to_string(most));
  }
  const Json& head = at(queue.status, "head");
  std::size_t place = 0;  // in the line
  for (const Json& entry : head) {
    const auto has_name = [&](const Permits::Job* job) { return job->name == entry; };
    const auto found = std::find_if(line.begin(), line.end(), has_name);
    if (found == line.end() || !may_wait(**found)) {
      is_old("head has " + entry.get<std::string>());
      continue;
    }
    const auto at_place = static_cast<std::size_t>(found - line.begin());
    if (at_place < place) is_old("head has " + entry.get<std::string>() + " too late");
    place = std::max(place, at_place);
  }
  if (!sure || head.size() >= reconciler::kHeadLimit) return old;
  for (const Permits::Job* const job : line) {
    const bool missing = std::find(head.begin(), head.end(), Json(job->name)) == head.end();
    if (waits(*job) && !permits.is_admitted(*job) && missing) is_old("head has no " + job->name);
  }
  return old;
}

std::string Liveness::untidy_queues() const {
  for (const auto& [name, queue] : ledger_.permits().queues()) {
    if (queue.uid.empty()) continue;
    const Json& status = queue.status;
    if (int_at(status, "running") != 0 || int_at(status, "waiting") != 0 ||
        !at(status, "head").empty() || !at(status, "admitting").empty()) {
      return "queue " + name + " says " + status.dump();
    }
  }
  return "";
}

}  // namespace holdfast::simulation
