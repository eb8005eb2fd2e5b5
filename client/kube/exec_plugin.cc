#include "client/kube/exec_plugin.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "client/kube/credentials.h"

namespace holdfast::kube {

Person person_for(const ExecConfig& config, const std::optional<Login>& login) {
  if (!login) return Person::kNobody;
  const bool may_ask = login->has_input && config.mode != InteractiveMode::kNever;
  return may_ask ? Person::kAnswers : Person::kReader;
}

Result<> check_interactive(const ExecConfig& config, const std::optional<Login>& login) {
  if (config.mode != InteractiveMode::kAlways || person_for(config, login) == Person::kAnswers) {
    return Unit{};
  }
  return make_error(
      ErrorCode::kInvalid,
      login ? "exec: interactiveMode is Always, but standard input is no terminal that can answer "
              "the program; run it at a terminal, and give a file instead of -f -"
            : "exec: interactiveMode is Always, but nobody can answer its questions here; use "
              "credentials that need no person, such as a service account's token");
}

std::string exec_info(const ExecConfig& config, Person person) {
  Json spec = {{"interactive", person == Person::kAnswers}};
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

ExecTimes exec_times(Duration left) {
  ExecTimes times;
  times.good_for = std::max(left, kExecRetry);
  times.renew_after = left - std::min(kExecMargin, left / 2);
  // Some programs return the same token until it expires. So the waits halve: half of the time
  // left, half of that, and in the end at the expiry.
  if (times.renew_after < kExecRetry) times.renew_after = times.good_for;
  return times;
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
  end();
  *self_ = nullptr;
}

void ExecCredentials::end() {
  shut_down();
  if (thread_.joinable()) thread_.join();
}

void ExecCredentials::shut_down() {
  if (std::exchange(stopped_, true)) return;
  stop_->set();
  deps_.loop.cancel(run_timer_);
  deps_.loop.cancel(patience_timer_);
  answer_all();
}

void ExecCredentials::answer(const Done& done, const Result<std::string>& value) {
  deps_.loop.post([done, value] { done(value); });
}

void ExecCredentials::answer_all() {
  for (const Done& done : std::exchange(waiting_, {})) answer(done, value());
}

bool ExecCredentials::usable() const { return header_ && deps_.loop.now() < good_until_; }

Result<std::string> ExecCredentials::value() const {
  if (stopped_) return make_error(ErrorCode::kCancelled, "credentials are not needed any more");
  if (usable()) return *header_;
  assert(failure_);
  return *failure_;
}

void ExecCredentials::authorization(Done done) {
  if (stopped_ || (usable() && !holds_up_)) return answer(done, value());
  const bool runs = thread_.joinable();
  if (!runs && failure_) return answer(done, value());  // run_timer_ ends that
  waiting_.push_back(std::move(done));
  if (!runs) start();
}

void ExecCredentials::invalidate() {
  if (stopped_ || !header_) return;
  if (thread_.joinable()) return hold_up();
  if (failure_ && deps_.login) return;  // run_timer_ asks again
  const SteadyTime earliest = ended_ + kExecRetry;
  if (deps_.loop.now() >= earliest) {
    start();
    hold_up();
  } else if (failure_) {
    run_at(earliest);
  }
}

void ExecCredentials::hold_up() {
  if (std::exchange(held_up_, true)) return;
  holds_up_ = true;
  if (deps_.login) return;
  patience_timer_ = deps_.loop.call_after(kExecPatience, [this] {
    patience_timer_ = 0;
    holds_up_ = false;
    if (usable()) answer_all();
  });
}

void ExecCredentials::run_at(SteadyTime when) {
  deps_.loop.cancel(run_timer_);
  run_timer_ = deps_.loop.call_at(when, [this] {
    run_timer_ = 0;
    start();
  });
}

void ExecCredentials::start() {
  deps_.loop.cancel(std::exchange(run_timer_, 0));
  held_up_ = false;
  ProgramRun run;
  run.command = config_.command;
  run.arguments = config_.arguments;
  run.environment = config_.environment;
  run.person = person_for(config_, deps_.login);
  if (deps_.login) run.limit.reset();
  run.environment.emplace_back("KUBERNETES_EXEC_INFO", exec_info(config_, run.person));
  const Login login =
      config_.mode == InteractiveMode::kNever ? Login() : deps_.login.value_or(Login());
  // Everything by value: the thread owns its data. Only the loop reads `self`.
  thread_ = std::thread([run = std::move(run), login, stop = stop_, self = self_,
                         program = deps_.run, &loop = deps_.loop] {
    if (login.lend) login.lend();
    Result<std::string> output = program(run, *stop);
    if (login.take_back) login.take_back();
    loop.post([self, output = std::move(output)]() mutable {
      if (*self != nullptr) (*self)->finished(std::move(output));
    });
  });
}

void ExecCredentials::finished(Result<std::string> output) {
  if (stopped_) return;  // end() joins
  thread_.join();
  const SteadyTime now = deps_.loop.now();
  ended_ = now;
  holds_up_ = false;
  deps_.loop.cancel(std::exchange(patience_timer_, 0));
  const Result<> accepted = accept(std::move(output));
  if (accepted.ok()) {
    if (failures_ > 0) deps_.log.info("the kubeconfig's exec plugin works again");
    failure_.reset();
    failures_ = 0;
  } else {
    failure_ = accepted.error();
    const Duration longest = deps_.login ? kExecLongestLoginRetry : kExecLongestRetry;
    Duration wait = std::min(kExecRetry * (1 << std::min(failures_, 10)), longest);
    // Without credentials nothing works, so there is no back-off. A person needs one.
    if (!deps_.login) {
      wait = std::min(wait, usable() ? std::max(good_until_ - now, kExecRetry) : kExecRetry);
    }
    ++failures_;
    run_at(now + wait);
    deps_.log.warn(failure_->message,
                   {{"next_try_in", human_duration(wait)},
                    {"requests", usable() ? "use the credentials that they have" : "fail"}});
  }
  answer_all();
}

// A success also schedules the next run.
Result<> ExecCredentials::accept(Result<std::string> output) {
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
    const Result<> taken = deps_.on_certificate(credential->certificate, credential->key);
    if (!taken.ok()) return failed(taken.error());
    certificate_ = credential->certificate;
  }
  Result<std::string> header = std::string();
  if (!credential->token.empty()) {
    header = bearer(credential->token, "the token of the exec plugin");
    if (!header.ok()) return failed(header.error());
  }
  header_ = std::move(*header);
  good_until_ = SteadyTime::max();
  if (!credential->expires) return Unit{};
  const SteadyTime now = deps_.loop.now();
  const ExecTimes times = exec_times(*credential->expires - deps_.wall_clock());
  good_until_ = now + times.good_for;
  run_at(now + times.renew_after);
  return Unit{};
}

}  // namespace holdfast::kube
