#include "operator/kube/client.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <unordered_map>
#include <utility>

namespace holdfast::kube {
namespace {

using http::Response;

constexpr Duration kFirstBackoff = std::chrono::milliseconds(100);
constexpr Duration kMaxBackoff = std::chrono::seconds(5);
// A reconcile that waits inside a call keeps a worker busy: what is to be put off for longer is
// handed to the caller, whose queue delays it without one.
constexpr Duration kMaxWaitInCall = std::chrono::seconds(2);
// A server that does not say how long its watch may be silent must not be able to hold it forever.
constexpr std::chrono::seconds kIdleGrace{5};

Error cancelled() { return make_error(ErrorCode::kCancelled, "the client is shutting down"); }

Error timed_out(const char* what) {
  return make_error(ErrorCode::kTransient, std::string("no time is left for ") + what);
}

bool is_retryable(const Error& error, const std::string& method) {
  if (error.http_status == 0) {
    return error.code == ErrorCode::kTransient && (method == "GET" || !error.maybe_applied);
  }
  return (error.http_status == 429 || error.http_status >= 500) && error.retry_after.has_value();
}

// The server's Accept header for one kind: the whole objects, or their metadata alone.
std::string accept_header(const Kind& kind, bool list) {
  if (!kind.metadata_only) return "application/json";
  return std::string("application/json;as=PartialObjectMetadata") + (list ? "List" : "") +
         ";g=meta.k8s.io;v=v1,application/json";
}

std::string encode_query_value(const std::string& value) {
  // Selectors hold nothing that the encoding of a path segment would not cover.
  std::string path = object_path("", "", "", value);
  return path.substr(path.rfind('/') + 1);
}

std::string query_of(const Kind& kind, const std::string& query) {
  std::string result = query;
  const auto append = [&result](const std::string& name, const std::string& value) {
    if (value.empty()) return;
    if (!result.empty()) result += "&";
    result += name + "=" + encode_query_value(value);
  };
  append("labelSelector", kind.label_selector);
  append("fieldSelector", kind.field_selector);
  return result.empty() ? "" : "?" + result;
}

struct Watch {
  std::shared_ptr<const Kind> kind;
  http::StreamRequest request;
  Client::WatchHandlers handlers;
  http::CallId call = 0;         // 0: waits for credentials
  std::optional<Error> refused;  // the status was not 200
  bool renewed_credentials = false;
};

}  // namespace

struct Client::State : std::enable_shared_from_this<Client::State> {
  explicit State(Dependencies dependencies) : deps(std::move(dependencies)) {
    tokens = deps.qps * 2;
    refilled = deps.loop.now();
  }

  // One attempt's wait for the network, or a pause; shut_down() ends both.
  using Done = std::function<void(bool completed)>;

  Task<Result<Response>> call(http::Request request, Duration timeout);
  Task<Result<Json>> json_call(http::Request request, Duration timeout);
  Task<Result<ListPage>> list(std::shared_ptr<const Kind> kind, http::Request request,
                              Duration timeout);
  Task<bool> pause(Duration delay);
  Task<Result<std::string>> authorization(SteadyTime deadline);
  Task<Result<Response>> attempt(http::Request request);

  Duration qps_delay();
  Duration backoff(int retries);
  void start_watch(WatchId id);
  void open_watch(WatchId id, const std::string& authorization);
  void watch_opened(WatchId id, const Response& response);
  void watch_ended(WatchId id, std::optional<Error> error);
  void observe(const std::string& verb, const Response* response, SteadyTime started);

  Dependencies deps;
  ServerClock clock;
  bool stopped = false;
  double tokens = 0;
  SteadyTime refilled;
  std::uint64_t next_id = 1;
  std::unordered_map<std::uint64_t, http::CallId> calls;  // in flight, by an id of our own
  std::unordered_map<std::uint64_t, std::pair<TimerId, Done>> pauses;
  std::unordered_map<WatchId, std::shared_ptr<Watch>> watches;
};

// False: the client is shut down.
Task<bool> Client::State::pause(Duration delay) {
  if (stopped) co_return false;
  const std::uint64_t id = next_id++;
  Callback<bool> waited([this, id, delay](Done done) {
    const TimerId timer = deps.loop.call_after(delay, [this, id] {
      const Done ended = std::move(pauses.at(id).second);
      pauses.erase(id);
      ended(true);
    });
    pauses.emplace(id, std::pair(timer, std::move(done)));
  });
  const bool completed = co_await waited;
  co_return completed;
}

Task<Result<std::string>> Client::State::authorization(SteadyTime deadline) {
  // Credentials may take long (a program is run); a caller with less time gets its answer.
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

Task<Result<Response>> Client::State::attempt(http::Request request) {
  const std::uint64_t id = next_id++;
  Callback<Result<Response>> answered([this, id, &request](auto done) {
    calls[id] = deps.transport.send(std::move(request), std::move(done));
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

Duration Client::State::qps_delay() {
  if (deps.qps <= 0) return Duration::zero();
  const SteadyTime now = deps.loop.now();
  tokens = std::min(tokens + to_seconds(now - refilled) * deps.qps, deps.qps * 2);
  refilled = now;
  tokens -= 1;
  if (tokens >= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-tokens / deps.qps));
}

Duration Client::State::backoff(int retries) {
  const Duration full = std::min(kMaxBackoff, kFirstBackoff * (1 << std::min(retries, 10)));
  return std::chrono::duration_cast<Duration>(full * (0.5 + deps.random.uniform() / 2));
}

Task<Result<Response>> Client::State::call(http::Request request, Duration timeout) {
  const auto self = shared_from_this();  // outlives the client while this runs
  const SteadyTime deadline = deps.loop.now() + timeout;
  const Duration delay = qps_delay();
  if (delay > Duration::zero()) {
    if (delay > timeout) co_return timed_out("the client's own rate limit");
    Task<bool> waiting = pause(delay);
    co_await waiting;
  }
  bool renewed_credentials = false;
  Duration waited{0};
  for (int retries = 0;;) {
    if (stopped) co_return cancelled();
    Task<Result<std::string>> authorizing = authorization(deadline);
    const Result<std::string> credentials = co_await authorizing;
    if (!credentials.ok()) co_return credentials.error();
    if (stopped) co_return cancelled();
    http::Request copy = request;
    if (!credentials.value().empty()) copy.headers.emplace_back("Authorization", *credentials);
    copy.timeout = deadline - deps.loop.now();
    const SteadyTime started = deps.loop.now();
    Task<Result<Response>> attempting = attempt(std::move(copy));
    Result<Response> result = co_await attempting;
    observe(request.method, result.ok() ? &*result : nullptr, started);
    if (result.ok() && result->status / 100 == 2) co_return result;
    const Error error = result.ok() ? error_from_response(*result) : result.error();
    if (error.code == ErrorCode::kCancelled) co_return error;
    if (error.http_status == 401) deps.credentials.invalidate();
    if (error.http_status == 401 && !renewed_credentials) {
      renewed_credentials = true;
      continue;
    }
    if (!is_retryable(error, request.method) || retries == kMaxRetries) co_return error;
    const Duration wait = error.retry_after ? *error.retry_after : backoff(retries);
    waited += wait;
    if (waited > kMaxWaitInCall || deps.loop.now() + wait >= deadline) co_return error;
    ++retries;
    deps.log.debug("request is retried", {{"method", request.method},
                                          {"target", request.target},
                                          {"retry", std::to_string(retries)},
                                          {"error", error.message}});
    Task<bool> waiting = pause(wait);
    const bool completed = co_await waiting;
    if (!completed) co_return cancelled();
  }
}

Task<Result<Json>> Client::State::json_call(http::Request request, Duration timeout) {
  request.decode = [](std::string&& body) -> std::any {
    if (body.empty()) return Result<Json>(Json());
    return parse_json(body);
  };
  Task<Result<Response>> calling = call(std::move(request), timeout);
  Result<Response> response = co_await calling;
  if (!response.ok()) co_return response.error();
  Result<Json> json = std::any_cast<Result<Json>&&>(std::move(response->decoded));
  if (!json.ok()) json.error().maybe_applied = true;
  co_return json;
}

Task<Result<ListPage>> Client::State::list(std::shared_ptr<const Kind> kind, http::Request request,
                                           Duration timeout) {
  request.decode = [kind](std::string&& body) -> std::any { return decode_list(*kind, body); };
  Task<Result<Response>> calling = call(std::move(request), timeout);
  Result<Response> response = co_await calling;
  if (!response.ok()) co_return response.error();
  Result<ListPage> page = std::any_cast<Result<ListPage>&&>(std::move(response->decoded));
  co_return page;
}

void Client::State::start_watch(WatchId id) {
  deps.credentials.authorization([weak = weak_from_this(), id](Result<std::string> credentials) {
    const auto self = weak.lock();
    if (!self || self->watches.count(id) == 0) return;
    if (!credentials.ok()) return self->watch_ended(id, credentials.error());
    self->open_watch(id, *credentials);
  });
}

void Client::State::open_watch(WatchId id, const std::string& authorization) {
  const std::shared_ptr<Watch> watch = watches.at(id);
  http::StreamRequest request = watch->request;
  if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
  const SteadyTime started = deps.loop.now();
  const auto weak = weak_from_this();
  http::StreamHandlers handlers;
  handlers.on_open = [weak, id, started](const Response& response) {
    const auto self = weak.lock();
    if (!self) return;
    self->observe("WATCH", &response, started);
    self->watch_opened(id, response);
  };
  handlers.on_lines = [weak, id](std::vector<std::any>&& lines) {
    const auto self = weak.lock();
    const auto found = self ? self->watches.find(id) : decltype(self->watches.find(id)){};
    if (!self || found == self->watches.end()) return;
    std::vector<WatchEvent> events;
    events.reserve(lines.size());
    for (std::any& line : lines) events.push_back(std::any_cast<WatchEvent&&>(std::move(line)));
    const auto handler = found->second->handlers.on_events;
    handler(std::move(events));
  };
  handlers.on_end = [weak, id](std::optional<Error> error) {
    const auto self = weak.lock();
    if (self) self->watch_ended(id, std::move(error));
  };
  watch->refused.reset();
  watch->call = deps.transport.open(std::move(request), std::move(handlers));
}

void Client::State::watch_opened(WatchId id, const Response& response) {
  const auto found = watches.find(id);
  if (found == watches.end()) return;
  if (response.status != 200) {
    found->second->refused = error_from_response(response);
    return;
  }
  const auto handler = found->second->handlers.on_open;
  if (handler) handler();
}

void Client::State::watch_ended(WatchId id, std::optional<Error> error) {
  const auto found = watches.find(id);
  if (found == watches.end()) return;
  const std::shared_ptr<Watch> watch = found->second;
  const bool by_us = error && error->code == ErrorCode::kCancelled;
  if (watch->refused && !by_us) error = watch->refused;
  if (!stopped && error && error->http_status == 401) {
    deps.credentials.invalidate();
    if (!std::exchange(watch->renewed_credentials, true)) {
      watch->call = 0;
      return start_watch(id);
    }
  }
  watches.erase(id);
  watch->handlers.on_end(std::move(error));
}

Client::Client(Dependencies dependencies)
    : state_(std::make_shared<State>(std::move(dependencies))) {}
Client::~Client() = default;

namespace {

http::Request make_request(const Client::Dependencies& deps, std::string method, std::string path,
                           std::string body, const CallOptions& options) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(path);
  request.headers = {{"Accept", "application/json"}, {"User-Agent", deps.user_agent}};
  if (!body.empty()) request.headers.emplace_back("Content-Type", options.content_type);
  request.body = std::move(body);
  return request;
}

}  // namespace

Task<Result<Json>> Client::get(std::string path, const CallOptions& options) {
  return state_->json_call(make_request(state_->deps, "GET", std::move(path), "", options),
                           options.timeout);
}
Task<Result<Json>> Client::post(std::string path, std::string body, const CallOptions& options) {
  return state_->json_call(
      make_request(state_->deps, "POST", std::move(path), std::move(body), options),
      options.timeout);
}
Task<Result<Json>> Client::put(std::string path, std::string body, const CallOptions& options) {
  return state_->json_call(
      make_request(state_->deps, "PUT", std::move(path), std::move(body), options),
      options.timeout);
}
Task<Result<Json>> Client::patch(std::string path, std::string body, const CallOptions& options) {
  return state_->json_call(
      make_request(state_->deps, "PATCH", std::move(path), std::move(body), options),
      options.timeout);
}
Task<Result<Json>> Client::del(std::string path, std::string body, const CallOptions& options) {
  return state_->json_call(
      make_request(state_->deps, "DELETE", std::move(path), std::move(body), options),
      options.timeout);
}

Task<Result<ListPage>> Client::list(const Kind& kind, const std::string& namespace_,
                                    const std::string& query, const CallOptions& options) {
  http::Request request = make_request(
      state_->deps, "GET",
      object_path(kind.group_path, kind.plural, namespace_) + query_of(kind, query), "", options);
  request.headers[0].second = accept_header(kind, true);
  request.accept_gzip = true;
  return state_->list(std::make_shared<const Kind>(kind), std::move(request), options.timeout);
}

Client::WatchId Client::watch(const Kind& kind, const std::string& namespace_, std::string query,
                              std::chrono::seconds server_timeout, WatchHandlers handlers) {
  State& state = *state_;
  const WatchId id = state.next_id++;
  const auto watch = std::make_shared<Watch>();
  watch->kind = std::make_shared<const Kind>(kind);
  if (!query.empty()) query += "&";
  query += "watch=1&timeoutSeconds=" + std::to_string(server_timeout.count());
  watch->request.target =
      object_path(kind.group_path, kind.plural, namespace_) + query_of(kind, query);
  watch->request.headers = {{"Accept", accept_header(kind, false)},
                            {"User-Agent", state.deps.user_agent}};
  watch->request.idle_timeout = server_timeout + kIdleGrace;
  watch->request.decode = [decoder = watch->kind](std::string_view line) -> std::any {
    return decode_watch_line(*decoder, line);
  };
  watch->handlers = std::move(handlers);
  state.watches.emplace(id, watch);
  if (state.stopped) {
    state.deps.loop.post([weak = state.weak_from_this(), id] {
      if (const auto self = weak.lock()) self->watch_ended(id, cancelled());
    });
  } else {
    state.start_watch(id);
  }
  return id;
}

void Client::cancel_watch(WatchId watch) {
  State& state = *state_;
  const auto found = state.watches.find(watch);
  if (found == state.watches.end()) return;
  if (found->second->call != 0) return state.deps.transport.cancel(found->second->call);
  state.deps.loop.post([weak = state.weak_from_this(), watch] {
    if (const auto self = weak.lock()) self->watch_ended(watch, cancelled());
  });
}

void Client::shut_down() {
  State& state = *state_;
  if (std::exchange(state.stopped, true)) return;
  for (const auto& [id, call] : state.calls) state.deps.transport.cancel(call);
  for (auto& [id, pause] : std::exchange(state.pauses, {})) {
    state.deps.loop.cancel(pause.first);
    state.deps.loop.post([done = pause.second] { done(false); });
  }
  std::vector<WatchId> watches;
  for (const auto& [id, watch] : state.watches) watches.push_back(id);
  for (const WatchId id : watches) cancel_watch(id);
}

bool Client::idle() const {
  return state_->calls.empty() && state_->pauses.empty() && state_->watches.empty();
}

const ServerClock& Client::server_clock() const { return state_->clock; }
Loop& Client::loop() { return state_->deps.loop; }

}  // namespace holdfast::kube
