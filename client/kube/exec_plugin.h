// Credentials from a program, as in kubectl (client.authentication.k8s.io/v1 and v1beta1): a bearer
// token, a client certificate, or both.
//
// The program runs on its own thread, one run at a time. The first request starts it and waits for
// it. Later runs are in the background: each starts kExecMargin before the credentials expire, and
// requests use the old ones meanwhile. Credentials without expirationTimestamp are used until the
// server answers 401.
//
// A failed run is logged and repeated, with back-off. Once the credentials have expired, requests
// get the failure as their answer, and the program runs again every kExecRetry.
//
// A 401 starts a run at once. Requests wait for this run, but only for kExecPatience. Then they use
// the old credentials: one API server that answers 401 by mistake must not cause an outage. Within
// kExecRetry after a run, a 401 starts no new run, because a server may refuse everything.
//
// A person at the terminal may log in. Then the program gets the terminal and has no time limit.
// After a 401, requests wait for it. After each failed login the next one comes later, whatever
// requests want, because each asks the person.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/kube/child_process.h"
#include "client/kube/client.h"
#include "client/kube/config.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/result.h"

namespace holdfast::kube {

// Long enough for five failed runs in a row.
inline constexpr Duration kExecMargin = std::chrono::minutes(5);
// The back-off after a failed run: the first wait, and the longest after doubling. The first is
// also the least time between two runs.
inline constexpr Duration kExecRetry = std::chrono::seconds(10);
inline constexpr Duration kExecLongestRetry = std::chrono::minutes(1);
// With a person at the terminal: a login that nobody answers must not ask for ever.
inline constexpr Duration kExecLongestLoginRetry = std::chrono::minutes(10);
// Far shorter than a replica's renew deadline.
inline constexpr Duration kExecPatience = std::chrono::seconds(2);

struct ExecCredential {
  std::string token;
  std::string certificate, key;  // PEM; both or none
  std::optional<Time> expires;
};

// A person at our terminal, who may log in. The functions are called on the thread of the run,
// around each run that may ask; empty: nothing to do.
struct Login {
  bool has_input = false;           // our standard input is the terminal, and nobody else reads it
  std::function<void()> lend;       // the terminal is the program's now
  std::function<void()> take_back;  // and ours again
};

// How the program may use the person: not at all, as a reader, or for answers.
Person person_for(const ExecConfig& config, const std::optional<Login>& login);

// Why the program cannot run here, if it must ask and nobody can answer.
Result<> check_interactive(const ExecConfig& config, const std::optional<Login>& login);

// The value of KUBERNETES_EXEC_INFO.
std::string exec_info(const ExecConfig& config, Person person);

// Parses the program's output. The message never shows any of it.
Result<ExecCredential> parse_exec_credential(const std::string& output,
                                             const std::string& api_version);

// What an answer with `left` until its expiry means: when to run the program again, and how long to
// use the answer. Credentials that live shorter than kExecRetry are used for kExecRetry: our clock
// may be fast, and the server judges by its own.
struct ExecTimes {
  Duration renew_after{0};
  Duration good_for{0};
};
ExecTimes exec_times(Duration left);

// Loop thread only.
class ExecCredentials : public Credentials {
 public:
  struct Dependencies {
    Loop& loop;
    Log log;
    // The wall clock for expirationTimestamp; the system's if empty.
    std::function<Time()> wall_clock;
    // Uses a client certificate. If it fails, the run has failed. Empty: certificates are refused.
    std::function<Result<>(const std::string& certificate, const std::string& key)> on_certificate;
    // Blocks, on the run's own thread. run_program if empty.
    std::function<Result<std::string>(const ProgramRun&, const StopEvent&)> run;
    // None: nobody is there, as for the operator.
    std::optional<Login> login = std::nullopt;
  };
  ExecCredentials(Dependencies dependencies, ExecConfig config);
  // As end().
  ~ExecCredentials() override;

  void authorization(std::function<void(Result<std::string>)> done) override;
  void invalidate() override;
  // Answers waiting and later requests with kCancelled. A running program is killed soon.
  void shut_down();
  // Then also waits until a running program has ended and the terminal is ours again: for a process
  // that ends without destructors.
  void end();

 private:
  using Done = std::function<void(Result<std::string>)>;

  bool usable() const;
  void run_at(SteadyTime when);
  void start();
  void hold_up();
  void finished(Result<std::string> output);
  Result<> accept(Result<std::string> output);
  void answer(const Done& done, const Result<std::string>& value);
  void answer_all();
  Result<std::string> value() const;

  Dependencies deps_;
  const ExecConfig config_;
  bool stopped_ = false;

  // Of the last run that succeeded.
  std::optional<std::string> header_;
  SteadyTime good_until_{};
  std::string certificate_;

  // Of the last run.
  std::optional<Error> failure_;
  int failures_ = 0;  // in a row
  SteadyTime ended_{};

  // Of the run in progress.
  std::vector<Done> waiting_;
  bool holds_up_ = false;  // the server refused header_; requests wait until patience_timer_
  bool held_up_ = false;   // requests have already waited once
  TimerId patience_timer_ = 0;
  std::thread thread_;

  TimerId run_timer_ = 0;  // of the next run
  std::shared_ptr<StopEvent> stop_;
  // Callbacks that a run posts find their owner through it; null after the owner's end.
  std::shared_ptr<ExecCredentials*> self_;
};

}  // namespace holdfast::kube
