#include "tests/simulation/warm_worker.h"

#include <algorithm>
#include <utility>

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A connection without an answer is given up.
constexpr seconds kRequestTimeout{10};
constexpr milliseconds kFirstPause{100};
constexpr seconds kLongestPause{10};
constexpr seconds kLongestWatch{agent::kWatchSeconds + 60};

agent::SlotSettings slot_settings(const WarmWorker::Settings& settings) {
  return {.duration = settings.lease_duration,
          .slots = settings.slots,
          .holder = settings.pod_name + "/" + settings.pod_uid,
          .life = settings.pod_uid + "-" + std::to_string(settings.life),
          .stop_grace = settings.stop_grace,
          .pod_grace = settings.grace};
}

}  // namespace

WarmWorker::WarmWorker(Scheduler& scheduler, Gateway& gateway, Settings settings, World world)
    : scheduler_(scheduler),
      gateway_(gateway),
      settings_(std::move(settings)),
      world_(std::move(world)),
      loop_(scheduler, settings_.clock, [] {}),
      random_(settings_.seed),
      slots_(slot_settings(settings_), random_),
      work_(settings_.namespace_, "holdfast-work-" + settings_.pod_uid),
      lease_(settings_.namespace_, "holdfast-worker-" + settings_.pod_uid),
      looks_(static_cast<std::size_t>(settings_.slots)),
      children_(static_cast<std::size_t>(settings_.slots)),
      pause_(kFirstPause) {
  loop_.post([this] { obey(slots_.begin(loop_.now())); });
}

WarmWorker::~WarmWorker() {
  *alive_ = false;
  over_ = true;
  close_watch();
  for (int slot = 0; slot < settings_.slots; ++slot) {
    if (child(slot).alive) child_is_dead(slot);
  }
  loop_.detach();
}

void WarmWorker::sigterm() {
  loop_.post([this] { notify([&](SteadyTime now) { return slots_.asked_to_end(now); }); });
}

void WarmWorker::hurry() {
  for (int slot = 0; slot < settings_.slots; ++slot) {
    if (!child(slot).runs) continue;
    later(child(slot), milliseconds(500 + random_.below(10'000)),
          [this, slot, code = child(slot).plan.exit_code] { child_ends(slot, code); });
  }
}

void WarmWorker::freeze() { loop_.pause(); }

void WarmWorker::thaw() {
  if (!loop_.paused()) return;
  thawed_at_ = scheduler_.now();
  loop_.resume();
}

// -- what Slots orders --------------------------------------------------------------------------

template <class Event>
void WarmWorker::notify(Event event) {
  if (over_) return;
  obey(slots_.deadlines(loop_.now()));
  if (!over_) obey(event(loop_.now()));
}

void WarmWorker::obey(const agent::SlotOrders& orders) {
  if (over_) return;
  if (orders.abort_request) ++request_;
  for (const AttemptId& id : orders.abort_looks) {
    for (Look& look : looks_) {
      if (look.id == id) look = Look{};
    }
  }
  for (int slot = 0; slot < settings_.slots && orders.kill_everything; ++slot) kill(slot);
  for (const int slot : orders.terminate) ask_to_end(slot);
  for (const int slot : orders.kill) kill(slot);
  for (const agent::SlotOrders::Start& one : orders.starts) start(one);
  if (orders.get_work) get_work();
  if (orders.get_worker || orders.put) write_worker(orders.put);
  for (const agent::SlotOrders::Look& one : orders.looks) look(one, /*for_message=*/false);
  for (const agent::SlotOrders::Look& one : orders.messages) look(one, /*for_message=*/true);
  if (orders.exit_code) return end(*orders.exit_code);
  set_timer(orders.wake_at);
}

void WarmWorker::set_timer(SteadyTime due) {
  loop_.cancel(timer_);
  timer_ = loop_.call_at(due, [this] { notify([&](SteadyTime now) { return slots_.woke(now); }); });
}

void WarmWorker::end(int exit_code) {
  over_ = true;
  close_watch();
  for (int slot = 0; slot < settings_.slots; ++slot) {
    if (child(slot).alive) child_is_dead(slot);
  }
  world_.exits(exit_code);
}

// -- requests -----------------------------------------------------------------------------------

Duration WarmWorker::latency() {
  const Duration usual(200'000 + static_cast<std::int64_t>(random_.below(3'000'000)));
  return random_.below(50) == 0 ? usual + milliseconds(random_.below(400)) : usual;
}

// The handler is called once, on the agent's loop.
void WarmWorker::send(const std::string& method, const std::string& path, std::string body,
                      Handler handler) {
  const auto answered = std::make_shared<bool>(false);
  const auto answer = [this, alive = alive_, answered,
                       handler = std::move(handler)](std::optional<ApiAnswer> what) {
    if (!*alive || std::exchange(*answered, true)) return;
    loop_.post([handler, what = std::move(what)] { handler(what); });
  };
  scheduler_.after(kRequestTimeout, [answer] { answer(std::nullopt); });
  Delivery delivery;
  delivery.request = {"agent-" + settings_.pod_name, method, path, "application/json",
                      std::move(body)};
  delivery.sent = scheduler_.now();
  scheduler_.after(latency(), [this, alive = alive_, answer, delivery]() mutable {
    if (!*alive || !world_.reaches() || world_.loses()) return;
    if (auto refused = fence(delivery.request.method, delivery.request.target)) {
      return answer(std::move(refused));
    }
    gateway_.arrive(std::move(delivery), [this, alive, answer](std::optional<ApiAnswer> what) {
      if (!*alive || !world_.reaches() || world_.loses()) return;
      scheduler_.after(latency(), [answer, what = std::move(what)] { answer(what); });
    });
  });
}

// The fence in the API server: a worker writes its Lease only while it is the holder. Which of the
// two refusals comes first, this one or the conflict, differs.
std::optional<ApiAnswer> WarmWorker::fence(const std::string& method,
                                           const std::string& path) const {
  if (method != "PUT" || gateway_.in_trouble() || settings_.seed % 2 == 0) return std::nullopt;
  const std::string name = path.substr(path.rfind('/') + 1);
  const Json* const stored = gateway_.server().find("leases", settings_.namespace_, name);
  if (!stored || string_at(at(*stored, "spec"), "holderIdentity") == holder()) return std::nullopt;
  return refusal(403, "Forbidden", "fenced: the Lease has another holder");
}

void WarmWorker::get_work() {
  send("GET", work_.path(), "", [this, number = ++request_](std::optional<ApiAnswer> answer) {
    if (over_) return;
    obey(slots_.deadlines(loop_.now()));
    if (over_ || number != request_) return;
    agent::WorkReading reading = agent::LeaseRefusal{.why = "no answer"};
    if (answer) reading = work_.read(answer->status, answer->body);
    hears(reading);
    notify([&](SteadyTime now) { return slots_.work_answered(now, reading); });
    if (!over_) seen(reading);
  });
}

void WarmWorker::write_worker(const std::optional<WorkerReport>& report) {
  const bool put = report.has_value();
  std::string body = put ? lease_.renewed(*report, gateway_.wall_clock()) : "";
  send(put ? "PUT" : "GET", lease_.path(), std::move(body),
       [this, number = ++request_, put](std::optional<ApiAnswer> answer) {
         if (over_) return;
         obey(slots_.deadlines(loop_.now()));
         if (over_ || number != request_) return;
         agent::WorkerReading reading = agent::LeaseRefusal{.why = "no answer"};
         if (answer) {
           reading = put ? lease_.read_renewal(answer->status, answer->body)
                         : lease_.read(answer->status, answer->body);
         }
         if (put && std::holds_alternative<agent::WorkerView>(reading)) {
           renewed_at_ = scheduler_.now();
         }
         notify([&](SteadyTime now) { return slots_.worker_answered(now, reading); });
       });
}

void WarmWorker::look(const agent::SlotOrders::Look& look, bool for_message) {
  Look& own = looks_[static_cast<std::size_t>(look.slot)];
  own.number = ++look_number_;
  own.id = look.id;
  send("GET", agent::job_path(settings_.namespace_, look.job_name), "",
       [this, look, for_message, number = own.number](std::optional<ApiAnswer> answer) {
         if (over_) return;
         obey(slots_.deadlines(loop_.now()));
         Look& mine = looks_[static_cast<std::size_t>(look.slot)];
         if (over_ || mine.number != number) return;
         agent::JobAnswer read;
         read.reading.why = "no answer";
         if (answer) {
           read =
               agent::read_job(look.job_name, look.id, lease_.uid(), answer->status, answer->body);
         }
         mine.answer = read;
         notify([&](SteadyTime now) {
           return for_message ? slots_.message_read(now, look.id, read.reading)
                              : slots_.looked(now, look.id, read.reading);
         });
       });
}

// -- the watch ----------------------------------------------------------------------------------

void WarmWorker::seen(const agent::WorkReading& reading) {
  const auto* const view = std::get_if<agent::WorkView>(&reading);
  if (!view) return;
  const bool missed = view->work && view->work->seq > seq_;
  if (begun_ && !missed) return;
  version_ = view->version;
  if (view->work) seq_ = std::max(seq_, view->work->seq);
  if (open_) {
    close_watch();
    watch_again();
  }
  if (!std::exchange(begun_, true)) open_watch();
}

void WarmWorker::hears(const agent::WorkReading& reading) {
  const auto* const view = std::get_if<agent::WorkView>(&reading);
  if (view && view->work && view->work->end && !knows_end_) knows_end_ = scheduler_.now();
}

bool WarmWorker::has_unasked() const {
  return std::any_of(children_.begin(), children_.end(),
                     [](const Child& one) { return one.runs && !one.signalled; });
}

bool WarmWorker::has_alive() const {
  return std::any_of(children_.begin(), children_.end(),
                     [](const Child& one) { return one.alive; });
}

void WarmWorker::open_watch() {
  open_ = true;
  deaf_ = false;
  const std::uint64_t number = ++watch_number_;
  const auto is_mine = [this, alive = alive_, number] {
    return *alive && !over_ && number == watch_number_;
  };
  const auto again = [this, is_mine] {
    loop_.post([this, is_mine] {
      if (!is_mine()) return;
      close_watch();
      watch_again();
    });
  };
  scheduler_.after(kLongestWatch, [is_mine, again] {
    if (is_mine()) again();
  });
  WatchSink sink;
  sink.on_line = [this, is_mine](std::string line) {
    if (!is_mine()) return;
    scheduler_.after(latency(), [this, is_mine, line = std::move(line)] {
      if (!is_mine()) return;
      deaf_ = deaf_ || !world_.reaches() || world_.loses();
      if (deaf_) return;
      loop_.post([this, is_mine, line] {
        if (is_mine()) line_has_come(line);
      });
    });
  };
  sink.on_end = [this, is_mine, again] {
    if (is_mine() && world_.reaches()) again();
  };
  Delivery delivery;
  delivery.request = {"agent-" + settings_.pod_name, "GET", work_.watch_path(version_), "", ""};
  delivery.sent = scheduler_.now();
  scheduler_.after(latency(), [this, is_mine, again, sink, delivery]() mutable {
    if (!is_mine()) return;
    if (!world_.reaches()) return again();
    // The answer may come when this worker is no more.
    gateway_.open(std::move(delivery), sink,
                  [this, &gateway = gateway_, is_mine, again](auto opened) {
                    if (!is_mine()) {
                      if (opened && opened->id != 0) gateway.server().close_watch(opened->id);
                      return;
                    }
                    if (opened && opened->answer.status == 200) {
                      watch_ = opened->id;
                      return;
                    }
                    if (opened && opened->answer.status == 410) begun_ = false;
                    again();
                  });
  });
}

void WarmWorker::line_has_come(const std::string& line) {
  const agent::WorkLease::Event event = work_.read_event(line);
  const auto* const news = std::get_if<agent::WorkLease::News>(&event);
  if (!news) {
    // The next GET says where to go on.
    if (std::holds_alternative<agent::WorkLease::Expired>(event)) begun_ = false;
    close_watch();
    return watch_again();
  }
  pause_ = kFirstPause;
  version_ = news->version;
  if (!news->reading) return;
  const auto* const view = std::get_if<agent::WorkView>(&*news->reading);
  if (view && view->work) seq_ = std::max(seq_, view->work->seq);
  hears(*news->reading);
  notify([&](SteadyTime now) { return slots_.watched(now, *news->reading); });
}

void WarmWorker::watch_again() {
  const std::uint64_t number = watch_number_;
  loop_.call_after(pause_, [this, number] {
    if (!over_ && begun_ && !open_ && number == watch_number_) open_watch();
  });
  pause_ = std::min<Duration>(2 * pause_, kLongestPause);
}

void WarmWorker::close_watch() {
  open_ = false;
  ++watch_number_;
  if (watch_ != 0) gateway_.server().close_watch(std::exchange(watch_, 0));
}

// -- commands -----------------------------------------------------------------------------------

void WarmWorker::later(Child& child, Duration delay, std::function<void()> what) {
  child.events.push_back(scheduler_.after(delay, std::move(what)));
}

void WarmWorker::start(const agent::SlotOrders::Start& start) {
  const int slot = start.slot;
  if (loop_.now() >= start.before) {
    return loop_.post([this, slot] {
      notify([&](SteadyTime now) { return slots_.happened(now, slot, agent::Missed{}); });
    });
  }
  const agent::JobAnswer& job = looks_[static_cast<std::size_t>(slot)].answer;
  Child& one = child(slot);
  one = Child{};
  one.id = start.id;
  one.plan = world_.plan(start.id, job.assignment.payload);
  one.progress_deadline = job.reading.progress_deadline;
  one.runs = one.alive = true;
  world_.began(*this, one.id);
  child_works(slot);
  if (one.plan.hangs) return;
  later(one, one.plan.lasts, [this, slot, code = one.plan.exit_code] { child_ends(slot, code); });
}

// It makes progress often enough, and keeps a checkpoint now and then.
void WarmWorker::child_works(int slot) {
  Child& one = child(slot);
  if (!one.runs || one.plan.hangs) return;
  world_.progressed(one.id);
  const bool keeps = random_.below(3) == 0;
  const std::int64_t number = keeps ? ++one.checkpoints : 0;
  loop_.post([this, slot, id = one.id, number] {
    if (!(child(slot).id == id) || !child(slot).runs) return;
    notify([&](SteadyTime now) {
      return slots_.happened(now, slot, agent::Progressed{"it goes on"});
    });
    if (number == 0) return;
    notify([&](SteadyTime now) {
      return slots_.happened(now, slot,
                             agent::Checkpointed{number, "at " + std::to_string(number)});
    });
  });
  const Duration often = one.progress_deadline.value_or(seconds(20)) / 3;
  later(one, often, [this, slot] { child_works(slot); });
}

void WarmWorker::child_ends(int slot, int exit_code) {
  Child& one = child(slot);
  if (!one.runs) return;
  one.runs = false;
  world_.ended(one.id, exit_code);
  loop_.post([this, slot, exit_code, id = one.id] {
    if (!(child(slot).id == id)) return;
    notify([&](SteadyTime now) {
      return slots_.happened(now, slot, agent::Ended{exit_code, exit_code == 0 ? "done" : ""});
    });
  });
  later(one, one.plan.leftovers, [this, slot] { child_is_dead(slot); });
}

void WarmWorker::child_is_dead(int slot) {
  Child& one = child(slot);
  if (!one.alive) return;
  const bool killed = std::exchange(one.runs, false);
  one.alive = false;
  for (const Scheduler::EventId event : std::exchange(one.events, {})) scheduler_.cancel(event);
  world_.dead(one.id);
  if (over_) return;
  loop_.post([this, slot, killed, id = one.id] {
    if (!(child(slot).id == id)) return;
    if (killed)
      notify([&](SteadyTime now) { return slots_.happened(now, slot, agent::Ended{137, ""}); });
    notify([&](SteadyTime now) { return slots_.happened(now, slot, agent::AllDead{}); });
  });
}

void WarmWorker::ask_to_end(int slot) {
  Child& one = child(slot);
  one.signalled = true;
  if (!one.runs || one.plan.ignores_sigterm || std::exchange(one.asked, true)) return;
  later(one, one.plan.sigterm_takes,
        [this, slot, code = one.plan.exit_code_on_sigterm] { child_ends(slot, code); });
}

void WarmWorker::kill(int slot) {
  Child& one = child(slot);
  if (!one.alive) return;
  later(one, milliseconds(1 + random_.below(8)), [this, slot] { child_is_dead(slot); });
}

}  // namespace holdfast::simulation
