// One slot of a warm worker: its folder, its command, and what the command reports.
//
//   SlotRunner runner(io, settings, 3, out, err, listener);
//   runner.prepare(id, assignment, [](std::string why) { ... });   // a clean folder
//   runner.start(before);                                          // then the command
//
// A thread of its own touches the files. If they hang, the command is killed in time all the same;
// but nothing begins. Loop only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/base/command_files.h"
#include "agent/base/file_thread.h"
#include "agent/serve/output.h"
#include "agent/serve/shepherd.h"
#include "agent/serve/slot_event.h"
#include "agent/wire/job_record.h"
#include "core/time.h"

namespace holdfast::agent {

class SlotRunner {
 public:
  struct Settings {
    std::string folder;
    std::vector<std::string> command;
    std::vector<std::string> environment;  // what every command gets ("NAME=value")
    bool no_op = false;                    // each attempt ends at once, with 0
    Duration duration{};                   // of the Lease
  };
  // Called from tick(), or in other turns of the loop.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void happened(int slot, SlotEvent event) = 0;
    virtual void says(std::string line) = 0;
  };

  SlotRunner(boost::asio::io_context& io, Settings settings, int slot, Output& out, Output& err,
             Listener& listener);

  using Then = std::function<void(std::string why)>;  // empty: it is done
  // For the attempt that begins next. No attempt is in the slot.
  void prepare(const AttemptId& id, Assignment assignment, Then then);
  // Replaces the message of the attempt that runs.
  void write_message(const std::string& message, Then then);

  // If the command cannot be started now, tick() says that it was missed.
  void start(SteadyTime before);
  void terminate();
  // Waits for no file any more.
  void kill();
  // The API server has the checkpoint with this number.
  void kept(std::int64_t number);

  // Looks at the files if that is due, and says what has become of the command. Returns when to
  // call it again.
  SteadyTime tick(SteadyTime now, std::optional<SteadyTime> renewed);

  // Its own process below the agent; -1: none.
  pid_t shepherd() const { return shepherd_.pid(); }
  void reaped(int status);
  // Whether orphans of the agent may be its.
  bool may_have_orphans() const { return run_.running && run_.orphans; }
  void no_orphans();

 private:
  // The command, from start() to AllDead.
  struct Run {
    bool running = false;  // until AllDead
    bool missed = false;
    bool killed = false;
    bool gone = false;     // no process is left
    bool orphans = false;  // the shepherd did not see the end
    bool reported_end = false;
    std::optional<int> exit_code = std::nullopt;
    std::string result = {};
    bool looks = false;  // at the files
    bool last_look = false;
    SteadyTime last_look_until{};
    SteadyTime look_at{};
    std::optional<SteadyTime> renewed = std::nullopt;
  };

  void advance(SteadyTime now);
  void wait_for_news();
  void read_news();
  void end(int exit_code, SteadyTime now);
  void look(SteadyTime now);
  void looked(CommandFiles::Found found, std::string result, bool last);
  bool later(FileThread::Work work);
  void next_work();
  std::vector<std::string> environment() const;

  // Constant after construction.
  const Settings settings_;
  const int slot_;
  const Duration look_period_;
  const std::string progress_path_;
  Output& out_;
  Output& err_;
  Listener& listener_;

  FileThread files_;
  std::deque<FileThread::Work> works_;  // waiting for it
  Shepherd shepherd_;
  boost::asio::posix::stream_descriptor news_;

  // Of the attempt.
  AttemptId id_;
  Assignment assignment_;
  CommandFiles command_files_;
  std::shared_ptr<Tail> tail_;
  std::uint64_t starts_ = 0;  // distinguishes its news from others'
  Run run_;
};

}  // namespace holdfast::agent
