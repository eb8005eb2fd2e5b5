// Credentials asked of a program, as kubectl does (client.authentication.k8s.io/v1 and v1beta1):
// a bearer token, a client certificate, or both.
//
// The program runs on a thread of its own, one run at a time. The first request starts it and waits
// for it; from then on it is run in the background, kExecMargin before the credentials expire, and
// requests use what is there until it does expire. Credentials without expirationTimestamp are used
// until the server answers 401.
//
// A failed run is logged and repeated, with back-off. Once nothing unexpired is left its failure is
// the answer to requests, and it is repeated each kExecRetry.
//
// A 401 starts a run at once. Requests wait for this run, but only for kExecPatience: then they use
// what they have, because one API server that answers 401 by mistake must not be an outage. For
// kExecRetry after a run a 401 starts none: a server that refuses everything does not make us run
// programs without end.
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

// Room for five failed runs in a row.
inline constexpr Duration kExecMargin = std::chrono::minutes(5);
// The back-off after a failed run: from, doubling, to. Runs are never closer than the first.
inline constexpr Duration kExecRetry = std::chrono::seconds(10);
inline constexpr Duration kExecLongestRetry = std::chrono::minutes(1);
// Shorter than the renew deadline of a replica by far.
inline constexpr Duration kExecPatience = std::chrono::seconds(2);

struct ExecCredential {
  std::string token;
  std::string certificate, key;  // PEM; both or none
  std::optional<Time> expires;
};

// The value of KUBERNETES_EXEC_INFO.
std::string exec_info(const ExecConfig& config);

// Reads what the program wrote. The message never shows any of it.
Result<ExecCredential> parse_exec_credential(const std::string& output,
                                             const std::string& api_version);

// What follows from an answer: after how long the program is run again, and for how long the answer
// is used. `left`: the time to its expiry. Credentials of a shorter life than kExecRetry are used
// for kExecRetry: our clock may be fast, and the server judges by its own.
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
    // The wall time that expirationTimestamp is compared with; the system's if empty.
    std::function<Time()> wall_clock;
    // Takes a client certificate; its failure is the failure of the run. Empty: a certificate is
    // refused.
    std::function<Status(const std::string& certificate, const std::string& key)> on_certificate;
    // Blocks; on the run's own thread. run_program if empty.
    std::function<Result<std::string>(const ProgramRun&, const StopEvent&)> run;
  };
  ExecCredentials(Dependencies dependencies, ExecConfig config);
  // Kills a running program and waits for it.
  ~ExecCredentials() override;

  void authorization(std::function<void(Result<std::string>)> done) override;
  void invalidate() override;
  // Answers all that wait, and all that ask from now on, with kCancelled.
  void shut_down();

 private:
  using Done = std::function<void(Result<std::string>)>;

  bool usable() const;
  void run_at(SteadyTime when);
  void start();
  void hold_up();
  void finished(Result<std::string> output);
  Status accept(Result<std::string> output);
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
  bool holds_up_ = false;  // the server has refused header_: requests wait, until patience_timer_
  bool held_up_ = false;   // they have done so once
  TimerId patience_timer_ = 0;
  std::thread thread_;

  TimerId run_timer_ = 0;  // of the next run
  std::shared_ptr<StopEvent> stop_;
  // What a run posts finds its owner by it, or that it is gone.
  std::shared_ptr<ExecCredentials*> self_;
};

}  // namespace holdfast::kube
