#include "agent/run/worker.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include <boost/asio/post.hpp>

#include "agent/base/exit_codes.h"
#include "agent/base/files.h"
#include "agent/base/lease_times.h"
#include "agent/base/signals.h"
#include "agent/base/state_file.h"
#include "core/agent_protocol.h"
#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The most waiting lines. More come only if stderr hangs.
constexpr std::size_t kMostWaitingLines = 16;

}  // namespace

Worker::Worker(Settings settings, std::vector<std::string> command)
    : settings_(std::move(settings)),
      command_(std::move(command)),
      look_period_(look_period(settings_.guard.duration)),
      loop_(kMostWaitingLines),
      calls_(loop_.io(), {settings_.host, settings_.port, settings_.credentials},
             [this] { obey(guard_.deadlines(steady_now())); }),
      random_(std::random_device()()),
      guard_(settings_.guard, random_),
      lease_(settings_.lease_namespace, settings_.lease_name),
      files_(loop_.io()),
      command_files_(settings_.progress_file) {}

int Worker::run() {
  loop_.watch([this] { time_has_come(); }, [this] { signals_have_come(); });
  try {
    obey(guard_.begin(steady_now()));
    while (!loop_.exit_code()) loop_.turn();
  } catch (...) {
    child_.kill_all();
    throw;
  }
  return *loop_.exit_code();
}

// -- what wakes it -----------------------------------------------------------------------------

void Worker::time_has_come() {
  obey(guard_.deadlines(steady_now()));
  // After each SIGKILL, look for ended processes again.
  reap();
  if (started_ && steady_now() >= look_at_) tend();
  obey(guard_.woke(steady_now()));
}

void Worker::signals_have_come() {
  obey(guard_.deadlines(steady_now()));
  while (const std::optional<int> number = loop_.next_signal()) {
    if (*number == SIGCHLD) continue;
    if (started_) child_.signal(*number);
    if (asks_to_end(*number)) obey(guard_.asked_to_end(steady_now()));
  }
  reap();
}

void Worker::reap() {
  if (!started_ || loop_.exit_code()) return;
  const Child::Reaped reaped = child_.reap();
  none_left_ = reaped.none_left;
  if (reaped.exit_code) {
    ended_ = true;
    tend();
    obey(guard_.child_ended(steady_now(), *reaped.exit_code));
    // What it left as termination message is not that of the next time.
    if (guard_.resting()) clear_log_ = true;
  }
  child_is_over();
}

// The Guard learns of the child's end after its last progress message is read. If the files hang,
// the Guard stops waiting.
void Worker::child_is_over() {
  if (!ended_ || !none_left_ || loop_.exit_code()) return;
  if (last_look_ || guard_.phase() == Guard::Phase::kFencing) obey(guard_.all_dead(steady_now()));
}

// -- what it does ------------------------------------------------------------------------------

void Worker::obey(const Orders& orders) {
  if (loop_.exit_code()) return;
  if (orders.stop == Orders::Stop::kKill) child_.kill_all();
  if (orders.stop == Orders::Stop::kTerminate) {
    child_.signal(SIGTERM);
    child_.signal(SIGCONT);  // a stopped process would not handle the signal
  }
  if (orders.abort_request) calls_.abort();
  if (orders.start_before) start_child(*orders.start_before);
  if (orders.get || orders.put) send(orders);
  if (orders.kept) command_files_.kept(*orders.kept);
  if (!orders.say.empty()) say_soon(orders.say);
  if (orders.exit_code) return end(orders);
  wake_at_ = orders.wake_at;
  if (command_files_.is_behind(state()) || clear_log_) tend();
  set_timer();
}

void Worker::start_child(SteadyTime before) {
  const std::string checkpoint = lease_.checkpoint();
  ::unsetenv(kCheckpointVariable);
  if (!checkpoint.empty()) ::setenv(kCheckpointVariable, checkpoint.c_str(), 1);
  ended_ = none_left_ = last_look_ = false;  // the command may have run before
  const std::string why = child_.start(command_, before);
  started_ = true;
  look_at_ = steady_now() + look_period_;
  if (why.empty()) return;
  say_soon("cannot run \"" + command_.front() + "\": " + why);
  ended_ = true;
  boost::asio::post(loop_.io(), [this] {
    obey(guard_.child_ended(steady_now(), kCannotRun));
    reap();
  });
}

void Worker::send(const Orders& orders) {
  std::optional<std::string> body;
  if (orders.put) body = lease_.renewed(*orders.put, std::chrono::system_clock::now());
  calls_.send(
      lease_.path(), std::move(body),
      [this, put = orders.put.has_value()](int status, std::string_view text) {
        return put ? lease_.read_renewal(status, text) : lease_.read(status, text);
      },
      [this](const LeaseReading& reading) { obey(guard_.answered(steady_now(), reading)); });
}

void Worker::end(const Orders& orders) {
  loop_.end(orders.exit_code);
  calls_.abort();
  if (orders.fenced.empty()) return;
  leave_last_words(settings_.termination_log, kFencedMark + orders.fenced, orders.last_words);
}

void Worker::set_timer() {
  SteadyTime due = wake_at_;
  if (started_) due = std::min(due, look_at_);
  loop_.wake_at(due);
}

// -- its files ---------------------------------------------------------------------------------

std::string Worker::state() const {
  AgentState state;
  state.duration = settings_.guard.duration;
  // A probe of the command would fail while that does not run.
  if (guard_.phase() == Guard::Phase::kWaiting || guard_.resting()) {
    // In steps of D/6, so that not every read of the Lease writes the file.
    const Duration now = steady_now().time_since_epoch();
    state.phase = AgentState::Phase::kWaiting;
    state.renewed = SteadyTime(now - now % (state.duration / 6));
  } else {
    if (guard_.phase() == Guard::Phase::kRunning && started_) {
      state.phase = AgentState::Phase::kRunning;
    }
    state.renewed = guard_.renewed();
  }
  return format_state(state);
}

void Worker::say_soon(std::string line) {
  loop_.say_later(std::move(line));
  tend();
}

// Writes messages, leaves the state for `check`, and reads the child's progress. If the files hang,
// `check` fails and no progress is seen; nothing else happens.
void Worker::tend() {
  look_at_ = steady_now() + look_period_;
  tend_again_ = files_.busy();
  if (tend_again_) return;
  files_.run([this, lines = loop_.take_lines(), look = command_files_.look(state()),
              log = settings_.termination_log, clears_log = std::exchange(clear_log_, false),
              last = ended_]() mutable -> FileThread::Then {
    for (const std::string& line : lines) say(line);
    if (clears_log) static_cast<void>(::truncate(log.c_str(), 0));
    return [this, found = look(), last] { tended(found, last); };
  });
}

void Worker::tended(CommandFiles::Found found, bool last) {
  if (loop_.exit_code()) return;
  last_look_ = last;
  const std::int64_t number = command_files_.found(found);
  if (number > 0 && started_) {
    obey(guard_.checkpointed(steady_now(), number, std::move(found.checkpoint->text)));
  }
  if (found.progress && started_) obey(guard_.progressed(steady_now(), *std::move(found.progress)));
  child_is_over();
  if (tend_again_ && !loop_.exit_code()) tend();
}

}  // namespace holdfast::agent
