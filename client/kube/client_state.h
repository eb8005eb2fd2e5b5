// The shared state of Client's calls (client.cc) and watches (client_watch.cc). Only these two
// files include this. Calls in progress hold the state, so it may outlive the client.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "client/kube/client.h"

namespace holdfast::kube {

struct Client::State : std::enable_shared_from_this<Client::State> {
  explicit State(Dependencies dependencies) : deps(std::move(dependencies)) {
    tokens = deps.qps * 2;
    refilled = deps.loop.now();
  }

  struct Watch;
  struct Call {
    http::CallId id = 0;
    http::Urgency urgency = http::Urgency::kOrdinary;
    CancellationPtr cancellation;
  };
  // How long a call may last, and what ends it earlier.
  struct Limits {
    Duration timeout;
    http::Urgency urgency;
    CancellationPtr cancellation;
    bool once = false;
  };
  static Limits limits(const CallOptions& options) {
    return {options.timeout, options.urgency, options.cancellation, options.once};
  }

  // One attempt's wait for the network, or a pause; shut_down() ends both.
  using Done = std::function<void(bool completed)>;

  Task<Result<http::Response>> call(http::Request request, Limits limits);
  Task<Result<JsonDocument>> json_call(const char* method, std::string path, std::string body,
                                       const CallOptions& options);
  Task<Result<JsonDocument>> json_call(http::Request request, Limits limits);
  Task<Result<std::string>> text_call(http::Request request, Limits limits);
  Task<Result<ListPage>> list(std::shared_ptr<const Kind> kind, http::Request request,
                              Limits limits);
  Task<bool> pause(Duration delay, const Limits& limits);
  // Cancels each call that refuses() now rejects.
  void cancel_calls();
  bool refuses(http::Urgency urgency, const CancellationPtr& cancellation) const {
    return stopped || (winding_down && urgency != http::Urgency::kVital) ||
           (cancellation && cancellation->cancelled);
  }
  bool refuses(const Limits& limits) const { return refuses(limits.urgency, limits.cancellation); }
  Task<Result<std::string>> authorization(SteadyTime deadline);
  Task<Result<http::Response>> attempt(http::Request request, CancellationPtr cancellation);

  // None: the delay would be longer than `most`, and the request does not count.
  std::optional<Duration> qps_delay(Duration most);
  Duration backoff(int retries);
  void start_watch(WatchId id);
  void open_watch(WatchId id, const std::string& authorization);
  void watch_opened(WatchId id, const http::Response& response);
  void watch_ended(WatchId id, std::optional<Error> error);
  void observe(const std::string& verb, const http::Response* response, SteadyTime started);

  Dependencies deps;
  ServerClock clock;
  bool winding_down = false;
  bool stopped = false;
  double tokens = 0;
  SteadyTime refilled;
  std::uint64_t next_id = 1;
  std::size_t open_calls = 0;  // each from its first step to its answer, whatever it waits for
  std::unordered_map<std::uint64_t, Call> calls;  // in flight, by an id of our own
  struct Pause {
    TimerId timer = 0;
    Done done;
    http::Urgency urgency = http::Urgency::kOrdinary;
    CancellationPtr cancellation;
  };
  std::unordered_map<std::uint64_t, Pause> pauses;
  std::unordered_map<WatchId, std::shared_ptr<Watch>> watches;
};

struct Client::State::Watch {
  std::shared_ptr<const Kind> kind;
  http::StreamRequest request;
  Client::WatchHandlers handlers;
  http::CallId call = 0;         // 0: waits for credentials
  std::optional<Error> refused;  // the status was not 200
  bool renewed_credentials = false;
};

// The answer to a request after shut_down(), or after its own cancel().
Error shutting_down();

}  // namespace holdfast::kube
