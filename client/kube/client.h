// The Kubernetes API client: one request in, one Result out, on the loop.
//
// It adds credentials (token re-read at once on 401), maps answers to ErrorCodes by what the
// caller does next, keeps the server's time from the Date headers, and retries as client-go does:
// 429 and 5xx that name Retry-After, and connection errors of idempotent requests, at most
// kMaxRetries times and never past the caller's deadline. Everything else is the caller's to
// decide. An optional rate limit (--qps) delays requests; there is none by default, because the
// server's API Priority and Fairness does it better.
//
//   auto call = client.put(path, body);
//   Result<JsonDocument> answer = co_await call;
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "client/http/transport.h"
#include "client/kube/object.h"
#include "core/json_view.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/random.h"
#include "core/server_clock.h"
#include "core/task.h"

namespace holdfast::kube {

inline constexpr int kMaxRetries = 10;

// Where the Authorization header comes from. Implementations: none (client certificate), a token
// file, a fixed token, an exec plugin.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // The header's value ("Bearer ..."), empty for none. `done` runs on the loop, not from inside.
  virtual void authorization(std::function<void(Result<std::string>)> done) = 0;
  // The server answered 401 to it: forget what is cached.
  virtual void invalidate() = 0;
};

// Marks calls that Client::cancel() ends.
struct Cancellation {
  bool cancelled = false;
};
using CancellationPtr = std::shared_ptr<Cancellation>;

struct CallOptions {
  Duration timeout = std::chrono::seconds(30);  // for the call with all its retries
  std::string content_type = "application/json";
  // What is more than ordinary is not held up by --qps either.
  http::Urgency urgency = http::Urgency::kOrdinary;
  // Of what was written only the metadata comes back: enough for who looks for its version.
  bool answer_with_metadata = false;
  CancellationPtr cancellation = nullptr;
};

// Of a read that a verdict rests on, which must be over by then.
inline CallOptions live_look(SteadyTime by, SteadyTime now) {
  CallOptions options;
  options.urgency = http::Urgency::kUrgent;
  options.timeout = std::min(options.timeout, std::max(Duration::zero(), by - now));
  return options;
}

// Told about every HTTP request (each retry is one), for metrics. code 0: no answer.
struct RequestObserver {
  std::function<void(const std::string& verb, int code, Duration took)> on_request;
};

class Client {
 public:
  struct Dependencies {
    Loop& loop;
    http::Transport& transport;
    Credentials& credentials;
    Random& random;
    Log log;
    RequestObserver observer;
    std::string user_agent = "holdfast-operator";
    double qps = 0;  // 0: no limit of our own; bursts of twice as many
  };
  explicit Client(Dependencies dependencies);
  ~Client();

  // `path` is encoded (object_path) and may carry a query. The JSON is the object that the server
  // answered with, null where it sent none.
  Task<Result<JsonDocument>> get(std::string path, const CallOptions& options = {});
  Task<Result<JsonDocument>> post(std::string path, std::string body,
                                  const CallOptions& options = {});
  Task<Result<JsonDocument>> put(std::string path, std::string body,
                                 const CallOptions& options = {});
  // options.content_type says which patch it is, e.g. "application/json-patch+json".
  Task<Result<JsonDocument>> patch(std::string path, std::string body, const CallOptions& options);
  // `body` is DeleteOptions with preconditions.
  Task<Result<JsonDocument>> del(std::string path, std::string body,
                                 const CallOptions& options = {});

  // One page. `query` is what follows '?'.
  Task<Result<ListPage>> list(const Kind& kind, const std::string& namespace_,
                              const std::string& query, const CallOptions& options = {});

  // Opens a watch; the lines that handlers get are WatchEvent in std::any. The stream is asked for
  // uncompressed. `server_timeout` goes into timeoutSeconds; the idle limit is 5 s more, or what
  // two bookmarks and a half take.
  // on_end's error is mapped as for requests (410 -> kGone, 429 -> kThrottled, ...): a status that
  // is not 200 is reported there only.
  struct WatchHandlers {
    std::function<void()> on_open;
    std::function<void(std::vector<WatchEvent>&& events)> on_events;
    std::function<void(std::optional<Error> error)> on_end;
  };
  using WatchId = std::uint64_t;
  WatchId watch(const Kind& kind, const std::string& namespace_, std::string query,
                std::chrono::seconds server_timeout, WatchHandlers handlers);
  void cancel_watch(WatchId watch);

  // The calls that were made with it answer kCancelled, also those that are yet to be made.
  void cancel(const CancellationPtr& cancellation);

  // The first third of a clean stop: cancels all calls but vital ones and refuses new ones
  // (kCancelled). Watches go on.
  void wind_down();

  // Cancels all calls and watches and refuses new ones (kCancelled): the second third of a
  // clean stop. The answers come in later turns of the loop; destroy the client after them.
  void shut_down();

  // No call and no watch is open: after shut_down(), all have had their answers.
  bool idle() const;

  // Known after the first answer.
  const ServerClock& server_clock() const;
  Loop& loop();

 private:
  struct State;
  std::shared_ptr<State> state_;  // also the calls in progress hold it
};

}  // namespace holdfast::kube
