// The Kubernetes API client: one request in, one Result out, on the loop.
//
// The client adds credentials, and reads a token again at once after a 401. It maps answers to
// ErrorCodes, which say what the caller does next. It keeps the server's time from the Date
// headers.
//
// It retries as client-go does: 429 and 5xx with a Retry-After, and connection errors of idempotent
// requests. There are at most kMaxRetries retries, and none after the caller's deadline. The caller
// decides about all other errors. The flag --qps sets a rate limit. By default there is no limit,
// because the server's API Priority and Fairness does it better.
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

// The source of the Authorization header. Implementations: none (client certificate), a token file,
// a fixed token, an exec plugin.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // The header's value ("Bearer ..."), empty for none. `done` runs on the loop, not inside this
  // call.
  virtual void authorization(std::function<void(Result<std::string>)> done) = 0;
  // The server answered 401: forget the cached value.
  virtual void invalidate() = 0;
};

// Marks calls that Client::cancel() ends.
struct Cancellation {
  bool cancelled = false;
};
using CancellationPtr = std::shared_ptr<Cancellation>;

struct CallOptions {
  Duration timeout = std::chrono::seconds(30);  // for the call including its retries
  std::string content_type = "application/json";
  // Only ordinary requests wait for --qps.
  http::Urgency urgency = http::Urgency::kOrdinary;
  // The server returns only the metadata of the written object. Enough for a caller that needs its
  // version.
  bool answer_with_metadata = false;
  // An answer that would allow a repetition is the caller's. For a write that is right only at the
  // moment of a decision.
  bool once = false;
  CancellationPtr cancellation = nullptr;
};

// Options of a live read that a verdict depends on. The read must end by `by`.
inline CallOptions live_look(SteadyTime by, SteadyTime now) {
  CallOptions options;
  options.urgency = http::Urgency::kUrgent;
  options.timeout = std::min(options.timeout, std::max(Duration::zero(), by - now));
  return options;
}

// Sees every HTTP request, each retry included. For metrics. code 0: no answer.
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
    double qps = 0;  // 0: no limit; bursts may be twice as large
  };
  explicit Client(Dependencies dependencies);
  ~Client();

  // `path` is encoded (object_path) and may carry a query. The JSON is the object in the answer, or
  // null if the answer has no object.
  Task<Result<JsonDocument>> get(std::string path, const CallOptions& options = {});
  // The answer as it is: a pod's log, say.
  Task<Result<std::string>> get_text(std::string path, const CallOptions& options = {});
  Task<Result<JsonDocument>> post(std::string path, std::string body,
                                  const CallOptions& options = {});
  Task<Result<JsonDocument>> put(std::string path, std::string body,
                                 const CallOptions& options = {});
  // options.content_type is the patch type, e.g. "application/json-patch+json".
  Task<Result<JsonDocument>> patch(std::string path, std::string body, const CallOptions& options);
  // `body` is DeleteOptions with preconditions.
  Task<Result<JsonDocument>> del(std::string path, std::string body,
                                 const CallOptions& options = {});

  // One page. `query` is what follows '?'.
  Task<Result<ListPage>> list(const Kind& kind, const std::string& namespace_,
                              const std::string& query, const CallOptions& options = {});

  // Opens a watch. Its lines are WatchEvents. The stream is asked for uncompressed.
  // `server_timeout` goes into timeoutSeconds. The idle limit is min(`server_timeout` + 5 s, two
  // and a half bookmark periods). Errors of on_end are mapped as for requests (410 -> kGone, 429 ->
  // kThrottled, ...). Only on_end reports a status that is not 200.
  struct WatchHandlers {
    std::function<void()> on_open;
    std::function<void(std::vector<WatchEvent>&& events)> on_events;
    std::function<void(std::optional<Error> error)> on_end;
  };
  using WatchId = std::uint64_t;
  WatchId watch(const Kind& kind, const std::string& namespace_, std::string query,
                std::chrono::seconds server_timeout, WatchHandlers handlers);
  void cancel_watch(WatchId watch);

  // All calls with this cancellation answer kCancelled, later calls too.
  void cancel(const CancellationPtr& cancellation);

  // The first step of a clean stop: cancels all calls except vital ones and refuses new ones
  // (kCancelled). Watches go on.
  void wind_down();

  // The second step of a clean stop: cancels all calls and watches and refuses new ones
  // (kCancelled). The answers come in later turns of the loop. Destroy the client after them.
  void shut_down();

  // No call and no watch is open. After shut_down() this means that all callers have their answers.
  bool idle() const;

  // Known after the first answer.
  const ServerClock& server_clock() const;
  Loop& loop();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the calls in progress
};

}  // namespace holdfast::kube
