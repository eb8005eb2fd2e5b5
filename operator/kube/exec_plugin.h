// Credentials asked of a program, as kubectl does (client.authentication.k8s.io/v1 and v1beta1):
// a bearer token, a client certificate, or both, kept until a minute before they expire.
//
// The program runs on a thread of its own, at most one run at a time; requests that need its answer
// wait for it. After a failed run the failure is the answer for kExecRetry, and as long nothing is
// thrown away because of a 401: a server that refuses everything does not make us run programs
// without end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/core/log.h"
#include "operator/core/loop.h"
#include "operator/core/result.h"
#include "operator/kube/child_process.h"
#include "operator/kube/client.h"
#include "operator/kube/config.h"

namespace holdfast::kube {

inline constexpr Duration kExecMargin = std::chrono::minutes(1);
inline constexpr Duration kExecRetry = std::chrono::seconds(10);

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

  void start();
  void finished(Result<std::string> output);
  Result<std::string> accept(Result<std::string> output);
  void answer(const Done& done, const Result<std::string>& value);

  Dependencies deps_;
  const ExecConfig config_;
  std::vector<Done> waiting_;
  std::optional<Result<std::string>> current_;
  SteadyTime valid_until_;
  SteadyTime kept_until_;  // invalidate() does nothing before
  std::string certificate_;
  bool stopped_ = false;
  std::thread thread_;  // of the run in progress
  std::shared_ptr<StopEvent> stop_;
  // What a run posts finds its owner by it, or that it is gone.
  std::shared_ptr<ExecCredentials*> self_;
};

}  // namespace holdfast::kube
