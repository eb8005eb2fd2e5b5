#include "operator/notify/notifier.h"

#include <algorithm>
#include <set>

#include "reconciler/shards.h"

namespace holdfast::notify {
namespace {

using reconciler::DeliveryView;
using reconciler::OutboxEntry;
using reconciler::TargetView;

constexpr std::size_t kSecretBytes = 1024;
constexpr int kGone = 410;
// One line of the log for a target that fails for all jobs.
constexpr std::chrono::minutes kLogAgain{1};

bool is_success(int status) { return status >= 200 && status < 300; }

// Whoever owns a job may read it: an error's text can name the target's host and address.
std::string kind_of(const Error& error) {
  return error.code == ErrorCode::kTransient ? "it gave no answer"
                                             : "its configuration is wrong: see the operator's log";
}

std::string in_words(const Answer& answer) {
  const std::string status = std::to_string(answer.status);
  if (answer.status == kGone) return "it answered 410: it wants no more of it";
  if (answer.status >= 300 && answer.status < 400) {
    return "it answered " + status + ", and redirects are not followed";
  }
  return "it answered " + status;
}

}  // namespace

Notifier::Notifier(Dependencies dependencies, Targets targets)
    : deps_(std::move(dependencies)), targets_(std::move(targets)) {}

Notifier::~Notifier() {
  *alive_ = false;
  stop();
}

void Notifier::stop() {
  stopped_ = true;
  for (auto& [name, line] : lines_) deps_.loop.cancel(std::exchange(line.timer, 0));
  for (auto& [key, record] : jobs_) {
    for (auto& [what, delivery] : record.deliveries) {
      deps_.loop.cancel(std::exchange(delivery.timer, 0));
    }
  }
}

reconciler::NotifyView Notifier::of(const codecs::CachedJob& job) const {
  reconciler::NotifyView view;
  const auto add = [&](const std::string& name) {
    TargetView& shown = view.targets[name];
    const Target* const target = targets_.find(name);
    if (!target) return;
    shown.state =
        target->allows(job.namespace_) ? TargetView::State::kKnown : TargetView::State::kForbidden;
    shown.events = target->events;
  };
  for (const std::string& name : job.job.notify) add(name);
  for (const OutboxEntry& entry : job.job.status.outbox) {
    for (const std::string& name : entry.targets) add(name);
  }
  const auto found = jobs_.find(job.key());
  if (found == jobs_.end() || found->second.job.uid != job.uid) return view;
  for (const auto& [what, delivery] : found->second.deliveries) {
    if (delivery.result) view.deliveries.push_back(*delivery.result);
  }
  return view;
}

void Notifier::drop(JobRecord& record,
                    const std::function<bool(std::int64_t, const std::string&)>& goes) {
  std::erase_if(record.deliveries, [&](auto& one) {
    if (!goes(one.first.first, one.first.second)) return false;
    deps_.loop.cancel(one.second.timer);
    return true;
  });
}

void Notifier::forget(const std::string& key) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return;
  drop(found->second, [](std::int64_t, const std::string&) { return true; });
  jobs_.erase(found);
}

void Notifier::deliver(const codecs::CachedJob& job) {
  const auto& outbox = job.job.status.outbox;
  if (outbox.empty() || stopped_) return forget(job.key());
  const auto known = jobs_.find(job.key());
  if (known != jobs_.end() && known->second.job.uid != job.uid) forget(job.key());
  JobRecord& record = jobs_[job.key()];
  record.job = {job.namespace_, job.name, job.uid};
  record.shard_key = reconciler::shard_key(job.job);
  record.entries.clear();
  std::set<std::pair<std::int64_t, std::string>> open;
  for (const OutboxEntry& entry : outbox) {
    if (!entry.unknown.empty()) continue;
    record.entries.emplace(entry.number, entry);
    for (const std::string& name : entry.targets) {
      const Target* const target = targets_.find(name);
      if (target && target->allows(job.namespace_)) open.emplace(entry.number, name);
    }
  }
  drop(record, [&](std::int64_t number, const std::string& target) {
    return open.count({number, target}) == 0;
  });
  for (const auto& what : open) {
    if (!record.deliveries.try_emplace(what).second) continue;
    enqueue({job.key(), job.namespace_, job.uid, what.first, what.second});
  }
}

Notifier::Delivery* Notifier::find(const Ticket& ticket, JobRecord** record) {
  const auto job = jobs_.find(ticket.key);
  if (job == jobs_.end() || job->second.job.uid != ticket.uid) return nullptr;
  const auto found = job->second.deliveries.find({ticket.number, ticket.target});
  if (found == job->second.deliveries.end()) return nullptr;
  if (record) *record = &job->second;
  return &found->second;
}

void Notifier::enqueue(const Ticket& ticket) {
  lines_[ticket.target].waiting.add(ticket.namespace_, ticket);
  // Not inside the caller's look at the job.
  deps_.loop.post([this, alive = alive_, target = ticket.target] {
    if (*alive) work(target);
  });
}

void Notifier::work(const std::string& target) {
  Line& line = lines_[target];
  if (stopped_ || line.timer != 0) return;
  const SteadyTime now = deps_.loop.now();
  if (now < line.closed_until) {
    if (line.waiting.waiting() == 0) return;
    line.timer = deps_.loop.call_at(line.closed_until, [this, target] {
      lines_[target].timer = 0;
      work(target);
    });
    return;
  }
  while (line.trying < kTriesAtOnce) {
    const auto next = line.waiting.next(now);
    if (!next) return;
    if (!begin_if_due(next->one)) line.waiting.done(next->tenant, now);
  }
}

bool Notifier::begin_if_due(const Ticket& ticket) {
  JobRecord* record = nullptr;
  Delivery* const delivery = find(ticket, &record);
  if (!delivery || delivery->state != Delivery::State::kInLine) return false;
  if (!deps_.holds(record->shard_key)) {
    // Its next owner delivers it.
    forget(ticket.key);
    return false;
  }
  return begin(ticket, *record, *delivery);
}

Result<Message> Notifier::message_for(const JobRecord& record, const OutboxEntry& entry,
                                      const Target& target) const {
  const Result<std::string> text = deps_.files.read(target.secret_file, kSecretBytes);
  if (!text.ok()) {
    return make_error(ErrorCode::kInvalid, "its secret cannot be read: " + text.error().message);
  }
  const Result<std::string> key = parse_secret(*text);
  if (!key.ok()) return key.error();
  Message message;
  message.id = message_id(record.job, entry);
  message.timestamp =
      std::chrono::duration_cast<std::chrono::seconds>(now().time_since_epoch()).count();
  message.body = message_body(targets_.source, record.job, entry);
  message.signature = sign(*key, message.id, message.timestamp, message.body);
  return message;
}

bool Notifier::begin(const Ticket& ticket, JobRecord& record, Delivery& delivery) {
  const Target& target = *targets_.find(ticket.target);
  Result<Message> message = message_for(record, record.entries.at(ticket.number), target);
  if (!message.ok()) {
    deps_.telemetry.notified(ticket.target, "failed");
    failed(ticket, record, delivery, failure_of(message.error()), std::nullopt);
    return false;
  }
  delivery.state = Delivery::State::kTrying;
  ++lines_[ticket.target].trying;
  deps_.poster.post(target, std::move(*message),
                    [this, alive = alive_, ticket](const Result<Answer>& answer) {
                      if (*alive) ended(ticket, answer);
                    });
  return true;
}

Notifier::Failure Notifier::failure_of(const Result<Answer>& answer) {
  if (answer.ok()) return {in_words(*answer), in_words(*answer)};
  return {kind_of(answer.error()), answer.error().message};
}

void Notifier::ended(const Ticket& ticket, const Result<Answer>& answer) {
  Line& line = lines_[ticket.target];
  --line.trying;
  line.waiting.done(ticket.namespace_, deps_.loop.now());
  const bool taken = answer.ok() && is_success(answer->status);
  const bool refused = answer.ok() && answer->status == kGone;
  deps_.telemetry.notified(ticket.target, taken ? "delivered" : refused ? "refused" : "failed");
  std::optional<Duration> pause;
  if (!taken && answer.ok() && answer->retry_after) {
    pause = reconciler::obeyed_pause(*answer->retry_after);
    // It has asked for it on behalf of all messages.
    line.closed_until = std::max(line.closed_until, deps_.loop.now() + *pause);
  }
  JobRecord* record = nullptr;
  Delivery* const delivery = find(ticket, &record);
  if (delivery && delivery->state == Delivery::State::kTrying) {
    if (taken || refused) {
      delivery->state = Delivery::State::kDone;
      delivery->result =
          DeliveryView{ticket.number, ticket.target,
                       taken ? DeliveryView::Result::kTaken : DeliveryView::Result::kRefused,
                       taken ? "" : in_words(*answer)};
      deps_.look_at(ticket.key);
    } else {
      failed(ticket, *record, *delivery, failure_of(answer), pause);
    }
  }
  work(ticket.target);
}

void Notifier::failed(const Ticket& ticket, JobRecord& record, Delivery& delivery,
                      const Failure& failure, std::optional<Duration> obeyed) {
  const Duration age = now() - record.entries.at(ticket.number).time;
  const Duration next = reconciler::next_notify_pause(age, deps_.random.uniform(), obeyed);
  delivery.state = Delivery::State::kPausing;
  delivery.result =
      DeliveryView{ticket.number, ticket.target, DeliveryView::Result::kFailing, failure.kind};
  log_failure(ticket, failure.detail, next);
  delivery.timer = deps_.loop.call_after(next, [this, ticket] {
    Delivery* const found = find(ticket);
    if (!found) return;
    found->timer = 0;
    found->state = Delivery::State::kInLine;
    enqueue(ticket);
  });
  // It may have been the last try.
  if (reconciler::notifies_no_longer(age)) deps_.look_at(ticket.key);
}

void Notifier::log_failure(const Ticket& ticket, const std::string& why, Duration next) {
  const SteadyTime now = deps_.loop.now();
  const auto logged = logged_.find(ticket.target);
  const Log::Fields fields = {{"target", ticket.target},
                              {"job", ticket.key},
                              {"uid", ticket.uid},
                              {"event", std::to_string(ticket.number)},
                              {"error", why},
                              {"next_try", human_duration(next)}};
  if (logged != logged_.end() && now - logged->second < kLogAgain) {
    deps_.log.debug("a target did not take an event; it is tried again", fields);
    return;
  }
  logged_[ticket.target] = now;
  deps_.log.warn("a target did not take an event; it is tried again", fields);
}

std::map<std::string, std::size_t> Notifier::waiting() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [name, target] : targets_.by_name) counts[name] = 0;
  for (const auto& [key, record] : jobs_) {
    if (!deps_.holds(record.shard_key)) continue;
    for (const auto& [what, delivery] : record.deliveries) {
      if (delivery.state != Delivery::State::kDone) ++counts[what.second];
    }
  }
  return counts;
}

}  // namespace holdfast::notify
