#include "operator/events/events.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "client/controller/fair_line.h"
#include "core/json.h"
#include "core/pause.h"
#include "core/task.h"
#include "core/utf8.h"
#include "operator/events/event_paces.h"
#include "operator/events/event_series.h"
#include "operator/events/lru_map.h"
#include "operator/events/series_writer.h"

namespace holdfast::events {
namespace {

// Objects and series remembered; both of client-go's caches have 4096 entries.
constexpr std::size_t kRemembered = 4096;
// Series of one namespace that wait to be written.
constexpr int kMaxQueue = 1000;
// Events must cost the API server little: one write at a time for each namespace, and this many in
// all.
constexpr int kMostInFlight = 8;
// After a write its namespace waits this many times as long as the write took. So the Events of a
// burst of jobs leave a busy API server to the jobs, and namespaces with hanging writes or a slow
// webhook leave most of the writes to others.
constexpr int kRest = 3;
constexpr Duration kOverflowReportPause = std::chrono::minutes(1);

}  // namespace

struct EventRecorder::State : std::enable_shared_from_this<State> {
  State(Loop& the_loop, kube::Client& client, const std::string& instance, Log the_log)
      : loop(the_loop),
        clock(client.server_clock()),
        writer(client, clean_text(instance, kMaxWord)),
        log(std::move(the_log)) {}

  Loop& loop;
  const ServerClock& clock;
  SeriesWriter writer;
  const Log log;

  EventPaces paces{kRemembered};
  LruMap<SeriesPtr> series{kRemembered};
  controller::FairLine<SeriesPtr> line{kMaxQueue};  // by namespace
  int in_flight = 0;
  bool going_on = false;
  std::uint64_t dropped = 0;
  std::function<void()> finished;  // set: it is about to stop
  bool stopped = false;
  struct Timers {
    TimerId pace = 0;
    TimerId wake = 0;  // for namespaces that have to wait
    TimerId finish = 0;
  };
  Timers timers;
  std::optional<SteadyTime> overflow_reported;

  void report_all(const std::vector<EventPaces::Report>& all);
  void wait_for_pace();
  void finish_if_done();
  void stop();
  void report(const ObjectReference& regarding, const EventPace::Entry& entry);
  void enqueue(const SeriesPtr& one);
  void go_on_soon();
  void go_on();
  static Task<void> write_next(std::shared_ptr<State> self, SeriesPtr one);
  SteadyTime failed(const SeriesPtr& one, const Error& error);
  void report_overflow(const std::string& namespace_);
  void lost(const Series& one, const Error& error);
};

void EventRecorder::State::enqueue(const SeriesPtr& one) {
  one->queued = true;
  line.add(one->regarding.namespace_, one);
  go_on_soon();
}

// In a later turn, so that Events do not delay a reconcile.
void EventRecorder::State::go_on_soon() {
  if (std::exchange(going_on, true)) return;
  loop.post([self = shared_from_this()] {
    self->going_on = false;
    self->go_on();
  });
}

void EventRecorder::State::go_on() {
  const SteadyTime now = loop.now();
  while (!stopped && in_flight < kMostInFlight) {
    std::optional<controller::FairLine<SeriesPtr>::Next> next = line.next(now);
    if (!next) break;
    if (finished && !is_end(*next->one)) {
      next->one->queued = false;
      ++dropped;
      line.done(next->tenant, now);
      continue;
    }
    ++in_flight;
    spawn(write_next(shared_from_this(), std::move(next->one)));
  }
  finish_if_done();
  loop.cancel(std::exchange(timers.wake, 0));
  const std::optional<SteadyTime> wake = line.wake(now);
  if (stopped || !wake) return;
  timers.wake = loop.call_at(*wake, [weak = weak_from_this()] {
    const std::shared_ptr<State> self = weak.lock();
    if (!self) return;
    self->timers.wake = 0;
    self->go_on();
  });
}

Task<void> EventRecorder::State::write_next(std::shared_ptr<State> self, SeriesPtr one) {
  one->queued = false;
  const SteadyTime began = self->loop.now();
  auto task = self->writer.write(one);
  const Result<> written = co_await task;
  --self->in_flight;
  const SteadyTime now = self->loop.now();
  SteadyTime not_before = now;
  if (!written.ok()) not_before = self->failed(one, written.error());
  not_before = std::max(not_before, now + kRest * (now - began));
  self->line.done(one->regarding.namespace_, not_before);
  self->go_on_soon();
}

// Until when the namespace must wait.
SteadyTime EventRecorder::State::failed(const SeriesPtr& one, const Error& error) {
  SteadyTime not_before = loop.now();
  heed(error, loop.now(), not_before);
  const bool waits = error.retry_after && !stopped;
  if (!waits) {
    lost(*one, error);  // a later repeat carries the full count
    return not_before;
  }
  log.debug(
      "Events wait: the API server has asked for a pause",
      {{"namespace", one->regarding.namespace_}, {"pause", human_duration(*error.retry_after)}});
  if (!std::exchange(one->queued, true)) line.add_first(one->regarding.namespace_, one);
  return not_before;
}

void EventRecorder::State::lost(const Series& one, const Error& error) {
  ++dropped;
  if (stopped) return;
  const Log::Fields fields = {{"job", one.regarding.namespace_ + "/" + one.regarding.name},
                              {"uid", one.regarding.uid},
                              {"reason", one.reason},
                              {"error", error.message}};
  // A namespace that is being deleted refuses new objects. That is normal.
  const bool is_terminating = error.code == ErrorCode::kForbidden &&
                              error.message.find("being terminated") != std::string::npos;
  if (is_terminating || error.code == ErrorCode::kNotFound) {
    log.debug("an Event was not written", fields);
  } else {
    log.warn("an Event was not written", fields);
  }
}

void EventRecorder::State::report_overflow(const std::string& namespace_) {
  const SteadyTime now = loop.now();
  if (overflow_reported && now - *overflow_reported < kOverflowReportPause) return;
  overflow_reported = now;
  log.warn("Events are dropped: too many wait to be written",
           {{"namespace", namespace_}, {"waiting", std::to_string(line.waiting())}});
}

EventRecorder::EventRecorder(Loop& loop, kube::Client& client, std::string instance, Log log)
    : state_(std::make_shared<State>(loop, client, std::move(instance), std::move(log))) {}

EventRecorder::~EventRecorder() { stop(); }

void EventRecorder::record(const ObjectReference& regarding, bool warning,
                           const std::string& reason, const std::string& action,
                           const std::string& note) {
  assert(!reason.empty() && !action.empty());
  State& state = *state_;
  // Without the server's time there is no eventTime. Nothing can happen before the server's first
  // answer.
  if (state.stopped || state.finished || !state.clock.known()) {
    ++state.dropped;
    return;
  }
  EventPace::Entry entry{
      warning,         clean_text(reason, kMaxWord), clean_text(action, kMaxWord), note, 1,
      state.loop.now()};
  // A repeat of one that is not written yet costs nothing.
  const Series event = series_of(regarding, entry);
  const SeriesPtr& known = state.series.get(series_key(event), nullptr);
  if (known && known->queued) return state.report(regarding, entry);
  state.report_all(state.paces.add(regarding, std::move(entry), state.loop.now()));
}

void EventRecorder::State::report_all(const std::vector<EventPaces::Report>& all) {
  for (const EventPaces::Report& one : all) report(one.regarding, one.entry);
  dropped += paces.take_dropped();
  if (timers.pace == 0) wait_for_pace();
}

void EventRecorder::State::wait_for_pace() {
  const std::optional<SteadyTime> wake = paces.wake();
  if (!wake) return;
  timers.pace = loop.call_at(*wake, [weak = weak_from_this()] {
    const std::shared_ptr<State> self = weak.lock();
    if (!self) return;
    self->timers.pace = 0;
    self->report_all(self->paces.due(self->loop.now()));
  });
}

void EventRecorder::State::report(const ObjectReference& regarding, const EventPace::Entry& entry) {
  Series event = series_of(regarding, entry);
  SeriesPtr& one = series.get(series_key(event), nullptr);
  if (!one) {
    event.name = event_name(event);
    one = std::make_shared<Series>(std::move(event));
  }
  if (!one->queued && !line.admits(regarding.namespace_)) {
    ++dropped;
    return report_overflow(regarding.namespace_);
  }
  one->last = clock.now(entry.at);
  if (one->count == 0) one->first = one->last;
  one->count += entry.count;
  if (!one->queued) enqueue(one);
}

std::uint64_t EventRecorder::dropped() const { return state_->dropped; }

void EventRecorder::finish(std::function<void()> finished) {
  State& state = *state_;
  assert(!state.finished && !state.stopped);
  state.finished = std::move(finished);
  state.report_all(state.paces.give_up());
  state.timers.finish = state.loop.call_after(kFinishLimit, [weak = state_->weak_from_this()] {
    const std::shared_ptr<State> self = weak.lock();
    if (!self) return;
    self->timers.finish = 0;
    self->stop();
    std::exchange(self->finished, nullptr)();
  });
  state.go_on_soon();
}

void EventRecorder::State::finish_if_done() {
  if (stopped || !finished || in_flight > 0 || line.waiting() > 0) return;
  stop();
  loop.post(std::exchange(finished, nullptr));
}

void EventRecorder::stop() { state_->stop(); }

void EventRecorder::State::stop() {
  if (std::exchange(stopped, true)) return;
  dropped += line.waiting();
  for (const EventPaces::Report& one : paces.give_up()) {
    dropped += static_cast<std::uint64_t>(one.entry.count);
  }
  dropped += paces.take_dropped();
  for (TimerId* const timer : {&timers.wake, &timers.pace, &timers.finish}) {
    loop.cancel(std::exchange(*timer, 0));
  }
}

}  // namespace holdfast::events
