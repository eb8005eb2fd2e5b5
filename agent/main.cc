// holdfast-agent. Its own exit codes: 1 failure, 2 wrong arguments or environment, 85 fenced, 126
// and 127 as in a shell.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/checkpoint.h"
#include "agent/base/files.h"
#include "agent/base/progress.h"
#include "agent/base/signals.h"
#include "agent/base/state_file.h"
#include "agent/run/settings.h"
#include "agent/run/worker.h"
#include "agent/serve/pool_agent.h"
#include "agent/serve/serve_settings.h"
#include "core/steady_now.h"
#include "core/utf8.h"

namespace {

using namespace holdfast;
using namespace holdfast::agent;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitCannotRun = 126;
constexpr int kExitNotFound = 127;
constexpr std::size_t kMaxStateBytes = 256;
constexpr std::size_t kMaxReasonBytes = 1024;  // of 4096 that the kubelet reads

constexpr const char* kHelp =
    "holdfast-agent: the heartbeat of a worker of a DurableJob\n\n"
    "  run -- COMMAND [ARGUMENT...]  wait for the job's Lease, run the command, renew the Lease,\n"
    "                                and end the command in time when that fails\n"
    "  serve -- COMMAND [ARGUMENT...]\n"
    "                                be a warm worker of a WorkerPool: run the command for each job\n"
    "                                that the operator gives it, with the job's payload on standard\n"
    "                                input\n"
    "  serve --no-op                 the same without a command: each job ends at once with 0\n"
    "  progress [MESSAGE]            report progress\n"
    "  checkpoint [--wait] TEXT      keep up to 1,024 bytes for the next attempt, which has them in\n"
    "                                HOLDFAST_CHECKPOINT; @FILE: the content of that file; --wait:\n"
    "                                return once the API server has it\n"
    "  check                         0 while the command runs and the Lease is fresh, or the agent\n"
    "                                waits for it and is at work; else 1\n"
    "  check -- PROBE [ARGUMENT...]  the same, but while the command runs it is for the probe to say\n"
    "  install FOLDER                copy this program to FOLDER/agent\n"
    "  --version, --help\n\n"
    "The environment of `run` and `serve` is set by the Holdfast operator.\n";

int usage(const std::string& what) {
  say(what + "; holdfast-agent --help shows the commands");
  return kExitUsage;
}

int failed(const Error& error, int exit_code) {
  say(error.message);
  return exit_code;
}

std::optional<std::string> process_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Not everybody who sees the pod can read its logs on stderr.
int wrong_settings(const Error& error) {
  write_termination_message(termination_log_of(process_environment),
                            "holdfast: " + clean_text(error.message, kMaxReasonBytes) + "\n");
  return failed(error, kExitUsage);
}

int run(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "--") arguments.erase(arguments.begin());
  if (arguments.empty() || arguments.front().empty()) {
    return usage("run needs a command: run -- COMMAND [ARGUMENT...]");
  }
  Result<Settings> settings = read_settings(process_environment);
  if (!settings.ok()) return wrong_settings(settings.error());
  block_signals();
  Worker worker(std::move(settings).value(), std::move(arguments));
  return worker.run();
}

int serve(std::vector<std::string> arguments) {
  const bool no_op = !arguments.empty() && arguments.front() == "--no-op";
  if (no_op) arguments.erase(arguments.begin());
  if (!arguments.empty() && arguments.front() == "--") arguments.erase(arguments.begin());
  if (!no_op && (arguments.empty() || arguments.front().empty())) {
    return usage("serve needs a command: serve -- COMMAND [ARGUMENT...]");
  }
  Result<ServeSettings> settings = read_serve_settings(process_environment);
  if (!settings.ok()) return wrong_settings(settings.error());
  block_signals();
  PoolAgent agent(std::move(settings).value(), std::move(arguments), no_op);
  return agent.run();
}

int progress(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1) return usage("progress takes one message: put it into quotes");
  const Result<std::string> path = read_progress_file(process_environment);
  if (!path.ok()) return failed(path.error(), kExitUsage);
  const Result<> reported = report_progress(*path, arguments.empty() ? "" : arguments.front());
  return reported.ok() ? 0 : failed(reported.error(), kExitFailed);
}

int checkpoint(std::vector<std::string> arguments) {
  const bool wait = !arguments.empty() && arguments.front() == "--wait";
  if (wait) arguments.erase(arguments.begin());
  if (arguments.size() != 1) {
    return usage("checkpoint takes one text, or @FILE: checkpoint [--wait] TEXT");
  }
  const Result<std::string> text = checkpoint_text(arguments.front());
  if (!text.ok()) return failed(text.error(), kExitUsage);
  const Result<std::string> path = read_progress_file(process_environment);
  if (!path.ok()) return failed(path.error(), kExitUsage);
  const Result<> left = leave_checkpoint(*path, *text, wait);
  return left.ok() ? 0 : failed(left.error(), kExitFailed);
}

int become(std::vector<std::string> command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  say("cannot run \"" + command.front() + "\": " + std::strerror(error));
  return error == ENOENT || error == ENOTDIR ? kExitNotFound : kExitCannotRun;
}

// Without this command, the user's own probe would kill an agent that still waits for its Lease,
// because the probed command does not run yet.
int check(std::vector<std::string> arguments) {
  const bool asks = arguments.size() >= 2 && arguments.front() == "--" && !arguments[1].empty();
  if (!arguments.empty() && !asks) {
    return usage("check takes nothing but a probe of yours: check -- PROBE [ARGUMENT...]");
  }
  const Result<std::string> path = read_progress_file(process_environment);
  if (!path.ok()) return failed(path.error(), kExitUsage);
  const std::optional<std::string> text = read_regular_file(state_file_of(*path), kMaxStateBytes);
  const std::optional<AgentState> state = text ? parse_state(*text) : std::nullopt;
  const std::string why = complaint(state, steady_now());
  if (!why.empty()) {
    say(why);
    return kExitFailed;
  }
  if (!asks || state->phase == AgentState::Phase::kWaiting) return 0;
  arguments.erase(arguments.begin());
  return become(std::move(arguments));
}

int install(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) return usage("install needs the folder to copy to");
  const Result<> installed = install_self(arguments.front());
  return installed.ok() ? 0 : failed(installed.error(), kExitFailed);
}

int dispatch(const std::string& command, std::vector<std::string> arguments) {
  if (command == "run") return run(std::move(arguments));
  if (command == "serve") return serve(std::move(arguments));
  if (command == "progress") return progress(arguments);
  if (command == "checkpoint") return checkpoint(std::move(arguments));
  if (command == "check") return check(std::move(arguments));
  if (command == "install") return install(arguments);
  if (command == "--help" || command == "--version") {
    std::fputs(command == "--help" ? kHelp : "holdfast-agent " HOLDFAST_VERSION "\n", stdout);
    return std::fflush(stdout) == 0 ? 0 : kExitFailed;
  }
  return usage("there is no command \"" + command + "\"");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) return usage("a command is needed");
    return dispatch(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  } catch (const std::exception& error) {
    say(std::string("an unexpected error ended the agent: ") + error.what());
    return kExitFailed;
  }
}
