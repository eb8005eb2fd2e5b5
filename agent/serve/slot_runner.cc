#include "agent/serve/slot_runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/asio/post.hpp>

#include "agent/base/files.h"
#include "agent/base/lease_times.h"
#include "agent/base/state_file.h"
#include "agent/serve/slot_files.h"
#include "core/agent_protocol.h"
#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

// How long an end waits for the result and the last checkpoint, if the folder hangs.
constexpr Duration kLastLookLimit = std::chrono::seconds(5);
// How long the end of a failed command waits for its last lines, if a descendant keeps its output
// open.
constexpr Duration kTailLimit = std::chrono::milliseconds(100);
// The most that wait for the file thread. More come only if it hangs.
constexpr std::size_t kMostWorks = 4;

std::string name_of(std::string_view variable) {
  return std::string(variable.substr(0, variable.find('=') + 1));
}

std::string system_error(int number) { return std::generic_category().message(number); }

// Descriptors of the command that the agent closes once it has started.
struct Ends {
  int in = -1;
  int out = -1;
  int err = -1;
  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    for (const int one : {in, out, err}) {
      if (one >= 0) ::close(one);
    }
  }
};

}  // namespace

SlotRunner::SlotRunner(boost::asio::io_context& io, Settings settings, int slot, Output& out,
                       Output& err, Listener& listener)
    : settings_(std::move(settings)),
      slot_(slot),
      look_period_(look_period(settings_.duration)),
      progress_path_(progress_file_in(settings_.folder)),
      out_(out),
      err_(err),
      listener_(listener),
      files_(io),
      news_(io),
      command_files_(progress_path_) {}

// -- before the start --------------------------------------------------------------------------

void SlotRunner::prepare(const AttemptId& id, Assignment assignment, Then then) {
  id_ = id;
  assignment_ = std::move(assignment);
  command_files_ = CommandFiles(progress_path_);
  if (settings_.no_op) return then("");
  const bool queued = later([folder = settings_.folder, message = assignment_.message,
                             look = command_files_.look(""), then]() mutable -> FileThread::Then {
    const Result<> clean = clean_folder(folder, message);
    look();  // what is there now is not the command's
    return [then, why = clean.ok() ? "" : clean.error().message] { then(why); };
  });
  if (!queued) then(settings_.folder + " hangs");
}

void SlotRunner::write_message(const std::string& message, Then then) {
  if (settings_.no_op) return then("");
  const bool queued =
      later([path = message_file_in(settings_.folder), message, then]() -> FileThread::Then {
        const Result<> written = replace_file(path, message, 0644);
        return [then, why = written.ok() ? "" : written.error().message] { then(why); };
      });
  if (!queued) then(settings_.folder + " hangs");
}

bool SlotRunner::later(FileThread::Work work) {
  if (works_.size() >= kMostWorks) return false;
  works_.push_back(std::move(work));
  next_work();
  return true;
}

void SlotRunner::next_work() {
  if (works_.empty() || files_.busy()) return;
  FileThread::Work work = std::move(works_.front());
  works_.pop_front();
  files_.run([this, work = std::move(work)]() -> FileThread::Then {
    return [this, then = work()] {
      then();
      next_work();
    };
  });
}

// -- the command -------------------------------------------------------------------------------

void SlotRunner::start(SteadyTime before) {
  ++starts_;
  run_ = Run{.running = true, .look_at = steady_now()};
  if (settings_.no_op) {
    run_.exit_code = 0;
    run_.gone = run_.last_look = true;
    return;
  }
  const std::string prefix = "[" + assignment_.job_name + " " + std::to_string(id_.attempt) + "] ";
  Ends ends;
  ends.in = file_in_memory(assignment_.payload);
  constexpr int kPipes = 2;
  tail_ = std::make_shared<Tail>(kPipes);
  if (ends.in >= 0) ends.out = out_.open(prefix, tail_);
  if (ends.out >= 0) ends.err = err_.open(prefix, tail_);
  std::string why = ends.err < 0 ? system_error(errno) : "";
  if (why.empty()) {
    why = shepherd_.start({settings_.command, environment(), ends.in, ends.out, ends.err}, before);
  }
  if (why.empty()) return wait_for_news();
  // The machine lacks a process, a descriptor or memory. That is no failure of this job.
  listener_.says("cannot start \"" + settings_.command.front() + "\": " + why);
  run_.missed = run_.gone = true;
}

std::vector<std::string> SlotRunner::environment() const {
  std::vector<std::string> ours;
  for (const auto& [name, value] : assignment_.variables) {
    ours.push_back(name);
    ours.back().append("=").append(value);
  }
  ours.push_back("HOLDFAST_PROGRESS_FILE=" + progress_path_);
  ours.push_back("HOLDFAST_RESULT_FILE=" + result_file_in(settings_.folder));
  ours.push_back("HOLDFAST_MESSAGE_FILE=" + message_file_in(settings_.folder));
  std::vector<std::string> all = ours;
  for (const std::string& variable : settings_.environment) {
    const std::string name = name_of(variable);
    const bool replaced = std::any_of(ours.begin(), ours.end(),
                                      [&](const auto& one) { return one.starts_with(name); });
    if (!replaced) all.push_back(variable);
  }
  return all;
}

void SlotRunner::wait_for_news() {
  boost::system::error_code ignored;
  news_.close(ignored);
  news_.assign(::fcntl(shepherd_.descriptor(), F_DUPFD_CLOEXEC, 0), ignored);
  read_news();
}

void SlotRunner::read_news() {
  if (!run_.running || !news_.is_open()) return;
  const Shepherd::News news = shepherd_.read();
  if (news.missed) run_.missed = true;
  if (news.exit_code && !run_.missed) end(*news.exit_code, steady_now());
  boost::system::error_code ignored;
  if (news.closed) return static_cast<void>(news_.close(ignored));
  news_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [this, start = starts_](boost::system::error_code error) {
                     if (error || start != starts_) return;
                     read_news();
                   });
}

void SlotRunner::end(int exit_code, SteadyTime now) {
  if (run_.exit_code) return;
  run_.exit_code = exit_code;
  run_.last_look_until = now + kLastLookLimit;
  look(now);
}

void SlotRunner::terminate() {
  if (run_.running && !run_.exit_code) shepherd_.terminate();
}

void SlotRunner::kill() {
  if (!run_.running) return;
  run_.killed = true;
  shepherd_.kill();
}

void SlotRunner::reaped(int status) {
  read_news();
  shepherd_.reaped(status);
  if (shepherd_.ended_well()) {
    run_.gone = true;
    return;
  }
  run_.orphans = true;
  if (!run_.missed && !run_.exit_code) end(128 + SIGKILL, steady_now());
}

void SlotRunner::no_orphans() {
  run_.orphans = false;
  run_.gone = true;
}

// -- what has become of it ---------------------------------------------------------------------

SteadyTime SlotRunner::tick(SteadyTime now, std::optional<SteadyTime> renewed) {
  if (!run_.running) return SteadyTime::max();
  run_.renewed = renewed;
  if (!run_.exit_code && !run_.missed && now >= run_.look_at) look(now);
  advance(now);
  if (!run_.running) return SteadyTime::max();
  if (run_.missed) return SteadyTime::max();  // until its shepherd has ended
  if (run_.exit_code) return run_.reported_end ? SteadyTime::max() : run_.last_look_until;
  return run_.look_at;
}

void SlotRunner::advance(SteadyTime now) {
  const std::uint64_t start = starts_;
  if (run_.missed && run_.gone) {
    run_.running = false;
    listener_.happened(slot_, Missed{});
    if (start == starts_) listener_.happened(slot_, AllDead{});
    return;
  }
  if (!run_.reported_end && run_.exit_code &&
      (run_.last_look || run_.killed || now >= run_.last_look_until)) {
    run_.reported_end = true;
    if (!run_.last_look && !run_.killed) {
      listener_.says(settings_.folder + " hangs: the result of job " + assignment_.job_name +
                     ", attempt " + std::to_string(id_.attempt) + " is not read");
    }
    // Its answer is the order to kill what is left.
    listener_.happened(slot_, Ended{*run_.exit_code, std::move(run_.result)});
  }
  if (start != starts_ || !run_.running || !run_.gone || !(run_.reported_end || run_.killed))
    return;
  run_.running = false;
  listener_.happened(slot_, AllDead{});
}

// -- its files ---------------------------------------------------------------------------------

void SlotRunner::kept(std::int64_t number) {
  if (command_files_.kept(number)) run_.look_at = steady_now();
}

// Leaves the state for `checkpoint --wait`, and reads what the command has left. If the files
// hang, no progress is seen.
void SlotRunner::look(SteadyTime now) {
  run_.look_at = now + look_period_;
  if (run_.looks && !run_.exit_code) return;
  AgentState state;
  state.phase = run_.exit_code ? AgentState::Phase::kOver : AgentState::Phase::kRunning;
  state.renewed = run_.renewed;
  state.duration = settings_.duration;
  run_.looks =
      later([this, start = starts_, folder = settings_.folder,
             look = command_files_.look(format_state(state)), last = run_.exit_code.has_value(),
             failed = run_.exit_code.value_or(0) != 0, tail = tail_]() mutable -> FileThread::Then {
        CommandFiles::Found found = look();
        std::string result = last ? read_result(folder) : "";
        // As the kubelet does it for a pod with terminationMessagePolicy FallbackToLogsOnError.
        if (failed && result.empty()) result = tail->lines(kMaxResultBytes, kTailLimit);
        return [this, start, found = std::move(found), result = std::move(result), last]() mutable {
          if (start == starts_ && run_.running) looked(std::move(found), std::move(result), last);
        };
      });
}

void SlotRunner::looked(CommandFiles::Found found, std::string result, bool last) {
  run_.looks = false;
  const std::int64_t number = command_files_.found(found);
  if (number > 0) {
    listener_.happened(slot_, Checkpointed{number, std::move(found.checkpoint->text)});
  }
  if (found.progress && run_.running) {
    listener_.happened(slot_, Progressed{*std::move(found.progress)});
  }
  if (!last || !run_.running) return;
  run_.last_look = true;
  run_.result = std::move(result);
}

}  // namespace holdfast::agent
