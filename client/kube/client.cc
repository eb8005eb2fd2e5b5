#include "client/kube/client.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "client/kube/client_state.h"
#include "client/kube/collection_request.h"
#include "client/kube/errors.h"
#include "client/kube/list_reader.h"

namespace holdfast::kube {
namespace {

using http::Response;

constexpr Duration kFirstBackoff = std::chrono::milliseconds(100);
constexpr Duration kMaxBackoff = std::chrono::seconds(5);
// A reconcile that waits inside a call keeps a worker busy. Longer waits go back to the caller,
// whose queue can delay the job without a worker.
constexpr Duration kMaxWaitInCall = std::chrono::seconds(2);
// The longest Retry-After that is obeyed.
constexpr Duration kLongestAsked = std::chrono::minutes(5);

Error timed_out(const char* what) {
  return make_error(ErrorCode::kTransient, std::string("no time is left for ") + what);
}

bool is_retryable(const Error& error, const std::string& method) {
  if (error.http_status == 0) {
    return error.code == ErrorCode::kTransient && (method == "GET" || !error.maybe_applied);
  }
  return (error.http_status == 429 || error.http_status >= 500) && error.retry_after.has_value();
}

class Open {
 public:
  explicit Open(std::size_t& count) : count_(count) { ++count_; }
  ~Open() { --count_; }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  std::size_t& count_;
};

http::Request make_request(const Client::Dependencies& deps, std::string method, std::string path,
                           std::string body, const CallOptions& options) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(path);
  request.headers = {{"Accept", options.answer_with_metadata ? kMetadataAlone : kWholeObject},
                     {"User-Agent", deps.user_agent}};
  if (!body.empty()) request.headers.emplace_back("Content-Type", options.content_type);
  request.body = std::move(body);
  request.urgency = options.urgency;
  return request;
}

}  // namespace

Error shutting_down() { return make_error(ErrorCode::kCancelled, "the call was given up"); }

// False: the client is shut down.
Task<bool> Client::State::pause(Duration delay, const Limits& limits) {
  if (refuses(limits)) co_return false;
  const std::uint64_t id = next_id++;
  Callback<bool> waited([this, id, delay, &limits](Done done) {
    const TimerId timer = deps.loop.call_after(delay, [this, id] {
      const Done ended = std::move(pauses.at(id).done);
      pauses.erase(id);
      ended(true);
    });
    pauses.emplace(id, Pause{timer, std::move(done), limits.urgency, limits.cancellation});
  });
  const bool completed = co_await waited;
  co_return completed;
}

Task<Result<std::string>> Client::State::authorization(SteadyTime deadline) {
  // Credentials may take long, because a program may run. A caller with less time gets an answer
  // first.
  struct Race {
    Callback<Result<std::string>>::Done done;
    TimerId timer = 0;
  };
  const auto race = std::make_shared<Race>();
  Callback<Result<std::string>> answered([this, race, deadline](auto done) {
    race->done = std::move(done);
    race->timer = deps.loop.call_at(deadline, [race] {
      const auto late = std::exchange(race->done, nullptr);
      if (late) late(timed_out("credentials"));
    });
    deps.credentials.authorization([this, race](Result<std::string> result) {
      const auto finished = std::exchange(race->done, nullptr);
      if (!finished) return;
      deps.loop.cancel(race->timer);
      finished(std::move(result));
    });
  });
  Result<std::string> result = co_await answered;
  co_return result;
}

Task<Result<Response>> Client::State::attempt(http::Request request, CancellationPtr cancellation) {
  const std::uint64_t id = next_id++;
  Callback<Result<Response>> answered([this, id, &request, &cancellation](auto done) {
    const http::Urgency urgency = request.urgency;
    calls[id] = {deps.transport.send(std::move(request), std::move(done)), urgency, cancellation};
  });
  Result<Response> response = co_await answered;
  calls.erase(id);
  co_return response;
}

void Client::State::observe(const std::string& verb, const Response* response, SteadyTime started) {
  if (response != nullptr && response->date) {
    clock.observe(*response->date, response->sent, response->received);
  }
  if (deps.observer.on_request) {
    deps.observer.on_request(verb, response == nullptr ? 0 : response->status,
                             deps.loop.now() - started);
  }
}

std::optional<Duration> Client::State::qps_delay(Duration most) {
  if (deps.qps <= 0) return Duration::zero();
  const SteadyTime now = deps.loop.now();
  tokens = std::min(tokens + to_seconds(now - refilled) * deps.qps, deps.qps * 2);
  refilled = now;
  const double wait = std::max(0.0, 1 - tokens) / deps.qps;
  // A request that is not sent must not delay later ones.
  if (wait > to_seconds(most)) return std::nullopt;
  tokens -= 1;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(wait));
}

Duration Client::State::backoff(int retries) {
  const Duration full = std::min(kMaxBackoff, kFirstBackoff * (1 << std::min(retries, 10)));
  return std::chrono::duration_cast<Duration>(full * (0.5 + deps.random.uniform() / 2));
}

Task<Result<Response>> Client::State::call(http::Request request, Limits limits) {
  const auto self = shared_from_this();  // outlives the client while this runs
  const Open open(open_calls);
  const SteadyTime deadline = deps.loop.now() + limits.timeout;
  const bool limited = request.urgency == http::Urgency::kOrdinary;
  const std::optional<Duration> delay = limited ? qps_delay(limits.timeout) : Duration::zero();
  if (!delay) co_return timed_out("the client's own rate limit");
  if (*delay > Duration::zero()) {
    Task<bool> waiting = pause(*delay, limits);
    co_await waiting;
  }
  bool renewed_credentials = false;
  Duration waited{0};
  for (int retries = 0;;) {
    if (refuses(limits)) co_return shutting_down();
    Task<Result<std::string>> authorizing = authorization(deadline);
    const Result<std::string> credentials = co_await authorizing;
    if (!credentials.ok()) co_return credentials.error();
    if (refuses(limits)) co_return shutting_down();
    http::Request copy = request;
    if (!credentials.value().empty()) copy.headers.emplace_back("Authorization", *credentials);
    copy.timeout = deadline - deps.loop.now();
    // This process may have been paused meanwhile. A late request must not be sent.
    if (copy.timeout <= Duration::zero()) co_return timed_out("the request");
    const SteadyTime started = deps.loop.now();
    Task<Result<Response>> attempting = attempt(std::move(copy), limits.cancellation);
    Result<Response> result = co_await attempting;
    observe(request.method, result.ok() ? &*result : nullptr, started);
    if (result.ok() && result->status / 100 == 2) co_return result;
    Error error = result.ok() ? error_from_response(*result) : result.error();
    if (error.retry_after) error.retry_after = std::min(*error.retry_after, kLongestAsked);
    if (error.code == ErrorCode::kCancelled) co_return error;
    if (error.http_status == 401) deps.credentials.invalidate();
    if (error.http_status == 401 && !renewed_credentials && !limits.once) {
      renewed_credentials = true;
      continue;
    }
    if (limits.once || !is_retryable(error, request.method) || retries == kMaxRetries) {
      co_return error;
    }
    const Duration wait = error.retry_after ? *error.retry_after : backoff(retries);
    waited += wait;
    if (waited > kMaxWaitInCall || deps.loop.now() + wait >= deadline) co_return error;
    ++retries;
    deps.log.debug("request is retried", {{"method", request.method},
                                          {"target", request.target},
                                          {"retry", std::to_string(retries)},
                                          {"error", error.message}});
    Task<bool> waiting = pause(wait, limits);
    const bool completed = co_await waiting;
    if (!completed) co_return shutting_down();
  }
}

Task<Result<JsonDocument>> Client::State::json_call(const char* method, std::string path,
                                                    std::string body, const CallOptions& options) {
  return json_call(make_request(deps, method, std::move(path), std::move(body), options),
                   limits(options));
}

Task<Result<JsonDocument>> Client::State::json_call(http::Request request, Limits limits) {
  request.decode = [](std::string&& body) -> std::any {
    if (body.empty()) return Result<JsonDocument>(JsonDocument());
    return JsonDocument::parse(body);
  };
  Task<Result<Response>> calling = call(std::move(request), std::move(limits));
  Result<Response> response = co_await calling;
  if (!response.ok()) co_return response.error();
  Result<JsonDocument> json = std::any_cast<Result<JsonDocument>&&>(std::move(response->decoded));
  if (!json.ok()) json.error().maybe_applied = true;
  co_return json;
}

Task<Result<std::string>> Client::State::text_call(http::Request request, Limits limits) {
  Task<Result<Response>> calling = call(std::move(request), std::move(limits));
  Result<Response> response = co_await calling;
  if (!response.ok()) co_return response.error();
  co_return std::move(response->body);
}

Task<Result<ListPage>> Client::State::list(std::shared_ptr<const Kind> kind, http::Request request,
                                           Limits limits) {
  request.make_reader = [kind] { return std::make_unique<ListReader>(kind); };
  Task<Result<Response>> calling = call(std::move(request), std::move(limits));
  Result<Response> response = co_await calling;
  if (!response.ok()) co_return response.error();
  Result<ListPage> page = std::any_cast<Result<ListPage>&&>(std::move(response->decoded));
  co_return page;
}

Client::Client(Dependencies dependencies)
    : state_(std::make_shared<State>(std::move(dependencies))) {}
Client::~Client() = default;

Task<Result<JsonDocument>> Client::get(std::string path, const CallOptions& options) {
  return state_->json_call("GET", std::move(path), "", options);
}
Task<Result<std::string>> Client::get_text(std::string path, const CallOptions& options) {
  http::Request request = make_request(state_->deps, "GET", std::move(path), "", options);
  request.headers[0].second = "*/*";
  return state_->text_call(std::move(request), State::limits(options));
}
Task<Result<JsonDocument>> Client::post(std::string path, std::string body,
                                        const CallOptions& options) {
  return state_->json_call("POST", std::move(path), std::move(body), options);
}
Task<Result<JsonDocument>> Client::put(std::string path, std::string body,
                                       const CallOptions& options) {
  return state_->json_call("PUT", std::move(path), std::move(body), options);
}
Task<Result<JsonDocument>> Client::patch(std::string path, std::string body,
                                         const CallOptions& options) {
  return state_->json_call("PATCH", std::move(path), std::move(body), options);
}
Task<Result<JsonDocument>> Client::del(std::string path, std::string body,
                                       const CallOptions& options) {
  return state_->json_call("DELETE", std::move(path), std::move(body), options);
}

Task<Result<ListPage>> Client::list(const Kind& kind, const std::string& namespace_,
                                    const std::string& query, const CallOptions& options) {
  http::Request request =
      make_request(state_->deps, "GET", collection_target(kind, namespace_, query), "", options);
  request.headers[0].second = accept_header(kind, Accept::kList);
  request.accept_gzip = true;
  return state_->list(std::make_shared<const Kind>(kind), std::move(request),
                      State::limits(options));
}

// The answers come in later turns.
void Client::State::cancel_calls() {
  const auto is_meant = [&](const auto& one) { return refuses(one.urgency, one.cancellation); };
  for (const auto& [id, call] : calls) {
    if (is_meant(call)) deps.transport.cancel(call.id);
  }
  for (auto pause = pauses.begin(); pause != pauses.end();) {
    if (!is_meant(pause->second)) {
      ++pause;
      continue;
    }
    deps.loop.cancel(pause->second.timer);
    deps.loop.post([done = std::move(pause->second.done)] { done(false); });
    pause = pauses.erase(pause);
  }
}

void Client::wind_down() {
  if (std::exchange(state_->winding_down, true) || state_->stopped) return;
  state_->cancel_calls();
}

void Client::cancel(const CancellationPtr& cancellation) {
  if (!std::exchange(cancellation->cancelled, true)) state_->cancel_calls();
}

void Client::shut_down() {
  State& state = *state_;
  if (std::exchange(state.stopped, true)) return;
  state.cancel_calls();
  std::vector<WatchId> watches;
  for (const auto& [id, watch] : state.watches) watches.push_back(id);
  for (const WatchId id : watches) cancel_watch(id);
}

bool Client::idle() const { return state_->open_calls == 0 && state_->watches.empty(); }

const ServerClock& Client::server_clock() const { return state_->clock; }
Loop& Client::loop() { return state_->deps.loop; }

}  // namespace holdfast::kube
