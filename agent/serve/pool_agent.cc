#include "agent/serve/pool_agent.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <utility>

#include "agent/base/files.h"
#include "agent/base/lease_times.h"
#include "agent/base/process_table.h"
#include "agent/base/signals.h"
#include "core/agent_protocol.h"
#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

// The most waiting lines. More come only if stderr hangs.
constexpr std::size_t kMostLines = 64;

// The mark of this process, which no other has.
std::string new_life() {
  std::random_device random;
  std::string life;
  for (int i = 0; i < 4; ++i) life += (i > 0 ? "-" : "") + std::to_string(random());
  return life;
}

SlotSettings slot_settings(const ServeSettings& settings) {
  return {.duration = settings.duration,
          .slots = settings.slots,
          .holder = settings.holder,
          .life = new_life(),
          .stop_grace = settings.stop_grace,
          .pod_grace = settings.pod_grace};
}

}  // namespace

PoolAgent::PoolAgent(ServeSettings settings, std::vector<std::string> command, bool no_op)
    : settings_(std::move(settings)),
      no_op_(no_op),
      loop_(kMostLines),
      random_(std::random_device()()),
      slots_(slot_settings(settings_), random_),
      work_(settings_.lease_namespace, settings_.work_lease),
      worker_(settings_.lease_namespace, settings_.worker_lease),
      calls_(loop_.io(), {settings_.host, settings_.port, settings_.credentials},
             [this] { obey(slots_.deadlines(steady_now())); }),
      looks_(loop_.io(), {settings_.host, settings_.port, settings_.credentials}, settings_.slots),
      watch_(loop_.io(), {settings_.host, settings_.port, settings_.credentials}, work_, random_,
             [this](const WorkReading& reading) {
               notify([&](SteadyTime now) { return slots_.watched(now, reading); });
             }),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO),
      files_(loop_.io()),
      slot_looks_(static_cast<std::size_t>(settings_.slots)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::vector<std::string> environment = without_settings(environ);
  SlotRunner::Listener& self = *this;
  for (int slot = 0; slot < settings_.slots; ++slot) {
    runners_.push_back(std::make_unique<SlotRunner>(
        loop_.io(),
        SlotRunner::Settings{.folder = settings_.slots_folder + "/" + std::to_string(slot),
                             .command = command,
                             .environment = environment,
                             .no_op = no_op_,
                             .duration = settings_.duration},
        slot, out_, err_, self));
  }
}

int PoolAgent::run() {
  loop_.watch([this] { time_has_come(); }, [this] { signals_have_come(); });
  try {
    obey(slots_.begin(steady_now()));
    while (!loop_.exit_code()) {
      tick();
      if (!loop_.exit_code()) loop_.turn();
    }
  } catch (...) {
    kill_descendants();
    throw;
  }
  return *loop_.exit_code();
}

// -- what wakes it -----------------------------------------------------------------------------

template <class Event>
void PoolAgent::notify(Event event) {
  obey(slots_.deadlines(steady_now()));
  if (!loop_.exit_code()) obey(event(steady_now()));
}

void PoolAgent::time_has_come() {
  notify([&](SteadyTime now) { return slots_.woke(now); });
  // After each SIGKILL, look for ended processes again.
  reap();
}

void PoolAgent::signals_have_come() {
  obey(slots_.deadlines(steady_now()));
  while (const std::optional<int> number = loop_.next_signal()) {
    if (!asks_to_end(*number)) continue;
    notify([&](SteadyTime now) { return slots_.asked_to_end(now); });
  }
  reap();
}

void PoolAgent::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    for (const auto& runner : runners_) {
      if (runner->shepherd() == pid) runner->reaped(status);
    }
  }
  kill_orphans_of_slots();
}

// Orphans come to the agent only from a slot whose shepherd was killed. Nobody knows which slot,
// if there are several. So these all wait until no orphan is left.
void PoolAgent::kill_orphans_of_slots() {
  const auto may_have = [](const auto& runner) { return runner->may_have_orphans(); };
  if (std::none_of(runners_.begin(), runners_.end(), may_have)) return;
  std::vector<pid_t> shepherds;
  for (const auto& runner : runners_) shepherds.push_back(runner->shepherd());
  if (kill_orphans(shepherds) > 0) return;
  for (const auto& runner : runners_) {
    if (may_have(runner)) runner->no_orphans();
  }
}

// After each event: what it has left to do.
void PoolAgent::tick() {
  SteadyTime due = SteadyTime::max();
  for (const auto& runner : runners_) {
    if (loop_.exit_code()) return;
    due = std::min(due, runner->tick(steady_now(), slots_.renewed()));
  }
  if (loop_.exit_code()) return;
  due = std::min(due, watch_.tick(steady_now()));
  write_lines();
  loop_.wake_at(std::min(due, wake_at_));
}

void PoolAgent::happened(int slot, SlotEvent event) {
  notify([&](SteadyTime now) { return slots_.happened(now, slot, std::move(event)); });
}

void PoolAgent::says(std::string line) { loop_.say_later(std::move(line)); }

// -- what it does ------------------------------------------------------------------------------

void PoolAgent::obey(const SlotOrders& orders) {
  if (loop_.exit_code()) return;
  stop(orders);
  for (const SlotOrders::Start& start : orders.starts) {
    runners_[static_cast<std::size_t>(start.slot)]->start(start.before);
  }
  send(orders);
  for (const SlotOrders::Look& one : orders.looks) look(one, LookFor::kStart);
  for (const SlotOrders::Look& one : orders.messages) look(one, LookFor::kMessage);
  for (const SlotOrders::Kept& one : orders.kept) {
    runners_[static_cast<std::size_t>(one.slot)]->kept(one.number);
  }
  for (const std::string& line : orders.say) says(line);
  if (orders.exit_code) return end(orders);
  wake_at_ = orders.wake_at;
}

void PoolAgent::stop(const SlotOrders& orders) {
  if (orders.abort_request) calls_.abort();
  for (const AttemptId& id : orders.abort_looks) {
    for (PendingLook& look : slot_looks_) {
      if (!(look.id == id)) continue;
      looks_.cancel(look.request);
      look = PendingLook{};
    }
  }
  if (orders.kill_everything) {
    kill_descendants();
    for (const auto& runner : runners_) runner->kill();
    return;
  }
  for (const int slot : orders.terminate) runners_[static_cast<std::size_t>(slot)]->terminate();
  for (const int slot : orders.kill) runners_[static_cast<std::size_t>(slot)]->kill();
  if (!orders.kill.empty()) kill_orphans_of_slots();
}

void PoolAgent::send(const SlotOrders& orders) {
  if (orders.get_work) get_work();
  if (orders.get_worker || orders.put) write_worker(orders.put);
}

void PoolAgent::get_work() {
  calls_.send(
      work_.path(), std::nullopt,
      [this](int status, std::string_view text) { return work_.read(status, text); },
      [this](const WorkReading& reading) {
        notify([&](SteadyTime now) { return slots_.work_answered(now, reading); });
        if (!loop_.exit_code()) watch_.seen(steady_now(), reading);
      });
}

// Reads it; with a report: writes it.
void PoolAgent::write_worker(const std::optional<WorkerReport>& report) {
  std::optional<std::string> body;
  if (report) body = worker_.renewed(*report, std::chrono::system_clock::now());
  calls_.send(
      worker_.path(), std::move(body),
      [this, put = report.has_value()](int status, std::string_view text) {
        return put ? worker_.read_renewal(status, text) : worker_.read(status, text);
      },
      [this](const WorkerReading& reading) {
        notify([&](SteadyTime now) { return slots_.worker_answered(now, reading); });
      });
}

void PoolAgent::end(const SlotOrders& orders) {
  loop_.end(orders.exit_code);
  calls_.abort();
  watch_.stop();
  if (!orders.fenced.empty()) {
    leave_last_words(settings_.termination_log, kFencedMark + orders.fenced, orders.last_words);
  }
  // Processes that live still write. Their end does not wait for their output.
  if (orders.last_words < kLastWordsLimit) return;
  out_.finish(kLastWordsLimit);
  err_.finish(kLastWordsLimit);
}

// -- jobs --------------------------------------------------------------------------------------

void PoolAgent::look(const SlotOrders::Look& look, LookFor purpose) {
  PendingLook& own = slot_looks_[static_cast<std::size_t>(look.slot)];
  looks_.cancel(own.request);  // the last attempt's, at its message
  const std::uint64_t number = ++look_numbers_;
  own.id = look.id;
  own.number = number;
  own.request = looks_.get(job_path(settings_.lease_namespace, look.job_name),
                           [this, look, purpose, number](const ApiReply& reply) {
                             obey(slots_.deadlines(steady_now()));
                             if (is_pending(look, number)) job_read(look, purpose, number, reply);
                           });
}

bool PoolAgent::is_pending(const SlotOrders::Look& look, std::uint64_t number) const {
  return !loop_.exit_code() && slot_looks_[static_cast<std::size_t>(look.slot)].number == number;
}

// A command starts without a further look at any file. So its folder is made ready first.
void PoolAgent::job_read(const SlotOrders::Look& look, LookFor purpose, std::uint64_t number,
                         const ApiReply& reply) {
  JobAnswer answer;
  answer.reading.why = reply.why;
  if (reply.status != 0) {
    answer = read_job(look.job_name, look.id, worker_.uid(), reply.status, reply.body);
  }
  answer.reading.retry_after = reply.retry_after;
  const auto then = [this, look, purpose, number, reading = answer.reading](
                        const std::string& why) { looked(look, purpose, number, reading, why); };
  if (answer.reading.kind != JobReading::Kind::kCurrent) return then("");
  SlotRunner& runner = *runners_[static_cast<std::size_t>(look.slot)];
  if (purpose == LookFor::kMessage) return runner.write_message(answer.assignment.message, then);
  runner.prepare(look.id, std::move(answer.assignment), then);
}

void PoolAgent::looked(const SlotOrders::Look& look, LookFor purpose, std::uint64_t number,
                       JobReading reading, const std::string& why) {
  obey(slots_.deadlines(steady_now()));
  if (!is_pending(look, number)) return;
  if (!why.empty()) {
    reading.kind = JobReading::Kind::kNone;
    reading.why = why;
  }
  slot_looks_[static_cast<std::size_t>(look.slot)] = PendingLook{};
  notify([&](SteadyTime now) {
    return purpose == LookFor::kMessage ? slots_.message_read(now, look.id, reading)
                                        : slots_.looked(now, look.id, reading);
  });
}

// -- stderr ------------------------------------------------------------------------------------

void PoolAgent::write_lines() {
  if (!loop_.has_lines() || files_.busy()) return;
  files_.run([lines = loop_.take_lines()]() -> FileThread::Then {
    for (const std::string& line : lines) say(line);
    return [] {};
  });
}

}  // namespace holdfast::agent
