#include "operator/kube/exec_plugin.h"

#include <algorithm>
#include <utility>

#include "operator/kube/credentials.h"

namespace holdfast::kube {

std::string exec_info(const ExecConfig& config) {
  Json spec = {{"interactive", false}};
  if (!config.cluster.is_null()) spec["cluster"] = config.cluster;
  const Json info = {
      {"apiVersion", config.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}};
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<ExecCredential> parse_exec_credential(const std::string& output,
                                             const std::string& api_version) {
  const auto refuse = [](const std::string& why) {
    return make_error(ErrorCode::kTransient, "its output " + why);
  };
  const Result<Json> json = parse_json(output);
  if (!json.ok()) return refuse("is not JSON");
  if (string_at(*json, "kind") != "ExecCredential") return refuse("is not an ExecCredential");
  if (string_at(*json, "apiVersion") != api_version) {
    return refuse("has another apiVersion than the kubeconfig's " + api_version);
  }
  const Json& status = at(*json, "status");
  ExecCredential credential;
  credential.token = string_at(status, "token");
  credential.certificate = string_at(status, "clientCertificateData");
  credential.key = string_at(status, "clientKeyData");
  if (credential.certificate.empty() != credential.key.empty()) {
    return refuse("has only one of clientCertificateData and clientKeyData");
  }
  if (credential.token.empty() && credential.certificate.empty()) {
    return refuse("has neither a token nor a client certificate");
  }
  const std::string expires = string_at(status, "expirationTimestamp");
  if (expires.empty()) return credential;
  credential.expires = parse_time(expires);
  if (!credential.expires) return refuse("has an expirationTimestamp that is not a time");
  return credential;
}

ExecCredentials::ExecCredentials(Dependencies dependencies, ExecConfig config)
    : deps_(std::move(dependencies)),
      config_(std::move(config)),
      stop_(std::make_shared<StopEvent>()),
      self_(std::make_shared<ExecCredentials*>(this)) {
  if (!deps_.wall_clock) {
    deps_.wall_clock = [] { return Time(std::chrono::system_clock::now()); };
  }
  if (!deps_.run) deps_.run = run_program;
}

ExecCredentials::~ExecCredentials() {
  shut_down();
  *self_ = nullptr;
  if (thread_.joinable()) thread_.join();
}

void ExecCredentials::shut_down() {
  if (std::exchange(stopped_, true)) return;
  stop_->set();
  current_ = make_error(ErrorCode::kCancelled, "credentials are not needed any more");
  for (const Done& done : std::exchange(waiting_, {})) answer(done, *current_);
}

void ExecCredentials::answer(const Done& done, const Result<std::string>& value) {
  deps_.loop.post([done, value] { done(value); });
}

void ExecCredentials::authorization(Done done) {
  if (stopped_ || (current_ && deps_.loop.now() < valid_until_)) return answer(done, *current_);
  waiting_.push_back(std::move(done));
  if (!thread_.joinable()) start();
}

void ExecCredentials::invalidate() {
  if (!stopped_ && current_ && deps_.loop.now() >= kept_until_) current_.reset();
}

void ExecCredentials::start() {
  ProgramRun run;
  run.command = config_.command;
  run.arguments = config_.arguments;
  run.environment = config_.environment;
  run.environment.emplace_back("KUBERNETES_EXEC_INFO", exec_info(config_));
  // Everything by value: the thread owns what it needs. `self` is looked into on the loop only.
  thread_ = std::thread(
      [run = std::move(run), stop = stop_, self = self_, program = deps_.run, &loop = deps_.loop] {
        Result<std::string> output = program(run, *stop);
        loop.post([self, output = std::move(output)]() mutable {
          if (*self != nullptr) (*self)->finished(std::move(output));
        });
      });
}

void ExecCredentials::finished(Result<std::string> output) {
  thread_.join();
  if (stopped_) return;
  const SteadyTime now = deps_.loop.now();
  kept_until_ = now + kExecRetry;
  valid_until_ = kept_until_;
  current_ = accept(std::move(output));
  if (!current_->ok()) deps_.log.warn(current_->error().message);
  for (const Done& done : std::exchange(waiting_, {})) answer(done, *current_);
}

// Sets valid_until_ where the credentials are good for longer.
Result<std::string> ExecCredentials::accept(Result<std::string> output) {
  const auto failed = [this](const Error& error) {
    std::string message = "the kubeconfig's exec plugin failed: " + error.message;
    if (error.code == ErrorCode::kNotFound && !config_.install_hint.empty()) {
      message += "; " + config_.install_hint;
    }
    return make_error(ErrorCode::kTransient, std::move(message));
  };
  if (!output.ok()) return failed(output.error());
  const Result<ExecCredential> credential = parse_exec_credential(*output, config_.api_version);
  if (!credential.ok()) {
    return failed(make_error(ErrorCode::kTransient,
                             "\"" + config_.command + "\": " + credential.error().message));
  }
  if (!credential->certificate.empty() && credential->certificate != certificate_) {
    if (!deps_.on_certificate) {
      return failed(make_error(ErrorCode::kInvalid, "client certificates are not supported here"));
    }
    const Status taken = deps_.on_certificate(credential->certificate, credential->key);
    if (!taken.ok()) return failed(taken.error());
    certificate_ = credential->certificate;
  }
  if (!credential->expires) {
    valid_until_ = SteadyTime::max();
  } else {
    // Short-lived ones are renewed at half their time. Less than kExecRetry is not believed: the
    // server judges by its own clock, not by ours.
    const Duration left = *credential->expires - deps_.wall_clock();
    valid_until_ =
        std::max(valid_until_, deps_.loop.now() + left - std::min(kExecMargin, left / 2));
  }
  if (credential->token.empty()) return std::string();
  return bearer(credential->token, "the token of the exec plugin");
}

}  // namespace holdfast::kube
