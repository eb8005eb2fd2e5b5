#include "tests/simulation/network.h"

#include <algorithm>
#include <utility>

#include "tests/support/decode_body.h"

namespace holdfast::simulation {
namespace {

using http::Response;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A request that is lost may also be answered by a reset.
constexpr Duration kLongestDelay = seconds(45);

Error transient(const char* message, bool maybe_applied) {
  Error error = make_error(ErrorCode::kTransient, message);
  error.maybe_applied = maybe_applied;
  return error;
}

// Mostly short, sometimes as long as a time-out.
Duration drawn_delay(std::uint64_t drawn) {
  const Duration most = drawn % 8 == 0 ? kLongestDelay : Duration(seconds(3));
  return Duration(
      static_cast<std::int64_t>((drawn >> 8) % static_cast<std::uint64_t>(most.count())));
}

// Moves each version in a body or in a query. Zero, or none, stays.
std::string shift_versions(std::string text, std::int64_t by) {
  if (by == 0) return text;
  for (const std::string mark : {"\"resourceVersion\":\"", "resourceVersion="}) {
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      const std::size_t first = at + mark.size();
      std::size_t last = first;
      while (last < text.size() && text[last] >= '0' && text[last] <= '9') ++last;
      if (last == first || text[first] == '0') continue;
      const std::int64_t version = std::stoll(text.substr(first, last - first)) + by;
      text.replace(first, last - first, std::to_string(version));
    }
  }
  return text;
}

}  // namespace

Network::Network(Scheduler& scheduler, Gateway& gateway, Strikes& strikes, std::uint64_t seed)
    : scheduler_(scheduler), gateway_(gateway), strikes_(strikes), random_(seed) {}

Network::Cut Network::cut_of(int replica) const {
  const auto found = cuts_.find(replica);
  return found == cuts_.end() ? Cut::kNone : found->second;
}

// ---- Requests.

struct SimTransport::Call {
  http::CallId id = 0;
  http::Request request;
  http::ResponseHandler handler;
  Delivery delivery;
  SteadyTime sent{};
  TimerId deadline = 0;
  bool arrived = false;
  std::int64_t raised = 0;  // see Network::versions_from
};

SimTransport::SimTransport(Network& network, SimLoop& loop, int replica, std::uint64_t life)
    : network_(network), loop_(loop), replica_(replica), life_(life) {
  network_.transports_.push_back(this);
}

http::CallId SimTransport::send(http::Request request, http::ResponseHandler handler) {
  const auto call = std::make_shared<Call>();
  call->id = next_id_++;
  call->handler = std::move(handler);
  if (dead_) {
    calls_.emplace(call->id, call);
    finish(call, make_error(ErrorCode::kCancelled, "the process is dead"));
    return call->id;
  }
  std::string content_type;
  for (const auto& [name, value] : request.headers) {
    if (name == "Content-Type") content_type = value;
  }
  if (network_.versions_from) {
    call->raised = network_.versions_from(request.target);
    request.target = shift_versions(std::move(request.target), -call->raised);
    request.body = shift_versions(std::move(request.body), -call->raised);
  }
  call->sent = loop_.now();
  call->delivery.request = {"holdfast-" + std::to_string(replica_), request.method, request.target,
                            std::move(content_type), std::move(request.body)};
  call->delivery.replica = replica_;
  call->delivery.life = life_;
  call->delivery.number = ++network_.requests_;
  call->delivery.sent = network_.scheduler_.now();
  if (network_.on_send) network_.on_send(call->delivery);
  const Duration limit = request.timeout;
  call->request = std::move(request);
  calls_.emplace(call->id, call);
  call->deadline = loop_.call_after(limit, [this, call] {
    call->deadline = 0;
    fail(call, "timed out", true);
  });
  Strikes& strikes = network_.strikes_;
  const int weight = call->request.method == "GET" ? 1 : 3;
  if (network_.cut_of(replica_) == Network::Cut::kRefused) {
    network_.scheduler_.after(network_.latency(), [this, call, alive = alive_] {
      if (*alive) fail(call, "connection refused", false);
    });
    return call->id;
  }
  if (network_.cut_of(replica_) == Network::Cut::kSilent) return call->id;
  if (const auto lost = strikes.strike(Act::kLoseRequest, replica_, weight)) {
    // Either the connection breaks, or nobody says anything.
    if (*lost % 2 == 0) return call->id;
    network_.scheduler_.after(network_.latency(), [this, call, alive = alive_] {
      if (*alive) fail(call, "connection reset", true);
    });
    return call->id;
  }
  Duration delay = network_.latency();
  if (const auto late = strikes.strike(Act::kDelayRequest, replica_, weight)) {
    delay += drawn_delay(*late);
  }
  if (call->request.method != "GET") {
    if (const auto twice = strikes.strike(Act::kDuplicate, replica_)) {
      // At once, or late: when the world has moved on.
      call->delivery.twice = true;
      transmit(call, *twice % 3 == 0 ? delay : delay + drawn_delay(*twice), 1);
    }
  }
  transmit(call, delay, 0);
  return call->id;
}

void SimTransport::transmit(const CallPtr& call, Duration delay, int copy) {
  Network& network = network_;
  Delivery delivery = call->delivery;
  delivery.copy = copy;
  delivery.awaited = [this, id = call->id, alive = alive_] {
    return *alive && calls_.count(id) > 0;
  };
  network.scheduler_.after(
      delay, [this, &network, call, delivery = std::move(delivery), alive = alive_]() mutable {
        call->arrived = true;
        // What a process sent before it died arrives or not.
        if (!*alive && network.random_.below(2) == 0) return;
        Strikes& strikes = network.strikes_;
        const int replica = delivery.replica;
        const int weight = delivery.request.method == "GET" ? 1 : 3;
        const Delivery kept = delivery;
        const auto reply = [this, call, kept, alive](std::optional<ApiAnswer> answer) {
          if (*alive && kept.copy == 0) answered(call, kept, std::move(answer));
        };
        if (network.refuses && network.refuses(delivery)) {
          return reply(refusal(503, "ServiceUnavailable", "unavailable"));
        }
        if (strikes.strike(Act::kRefuse429, replica)) {
          return reply(refusal(429, "TooManyRequests", "too many requests", 1));
        }
        if (strikes.strike(Act::kRefuse403, replica)) {
          return reply(refusal(403, "Forbidden", "forbidden"));
        }
        if (strikes.strike(Act::kRefuse500, replica)) {
          return reply(refusal(500, "InternalError", "an error on the server"));
        }
        if (const auto drawn = strikes.strike(Act::kRefuse503, replica, weight)) {
          const int retry_after = *drawn % 2 == 0 ? 1 + static_cast<int>(*drawn % 5) : 0;
          return reply(refusal(503, "ServiceUnavailable", "unavailable", retry_after));
        }
        network.gateway_.arrive(std::move(delivery), reply);
      });
}

void SimTransport::answered(const CallPtr& call, const Delivery& delivery,
                            std::optional<ApiAnswer> answer) {
  if (dead_ || calls_.count(call->id) == 0) return;
  if (network_.cut_of(replica_) != Network::Cut::kNone) return;  // it cannot come back
  if (!answer) {
    network_.scheduler_.after(network_.latency(), [this, call, alive = alive_] {
      if (*alive) fail(call, "connection reset", true);
    });
    return;
  }
  Strikes& strikes = network_.strikes_;
  const int weight = delivery.request.method == "GET" ? 1 : 3;
  if (const auto lost = strikes.strike(Act::kLoseAnswer, replica_, weight)) {
    if (*lost % 3 == 0) return;  // it waits for its time-out
    if (*lost % 3 == 1) {
      *answer = refusal(504, "Timeout", "request did not complete within the allotted time");
    } else {
      network_.scheduler_.after(network_.latency(), [this, call, alive = alive_] {
        if (*alive) fail(call, "connection reset", true);
      });
      return;
    }
  }
  Duration delay = network_.latency();
  if (const auto late = strikes.strike(Act::kDelayAnswer, replica_, weight)) {
    delay += drawn_delay(*late);
  }
  network_.scheduler_.after(delay,
                            [this, call, delivery, answer = std::move(*answer), alive = alive_] {
                              if (*alive && !dead_) deliver(call, delivery, answer);
                            });
}

Response SimTransport::response(const ApiAnswer& answer, SteadyTime sent) {
  Response response;
  response.status = answer.status;
  const Duration slower = ++answers_ % 3 == 0 ? network_.slower_server : Duration::zero();
  response.date = std::chrono::floor<seconds>(network_.gateway_.wall_clock() - slower);
  if (answer.retry_after_seconds > 0) response.retry_after = seconds(answer.retry_after_seconds);
  response.sent = sent;
  response.received = loop_.now();
  return response;
}

void SimTransport::deliver(const CallPtr& call, const Delivery& delivery, const ApiAnswer& answer) {
  if (calls_.count(call->id) == 0) return;
  if (network_.on_answer) network_.on_answer(delivery, answer);
  Response result = response(answer, call->sent);
  result.body = shift_versions(answer.body, call->raised);
  test::decode_body(call->request, result);
  finish(call, std::move(result));
}

void SimTransport::fail(const CallPtr& call, const char* why, bool maybe_applied) {
  if (calls_.count(call->id) > 0) finish(call, transient(why, maybe_applied));
}

void SimTransport::finish(const CallPtr& call, Result<Response> result) {
  loop_.cancel(std::exchange(call->deadline, 0));
  calls_.erase(call->id);
  loop_.post([call, result = std::move(result)]() mutable { call->handler(std::move(result)); });
}

void SimTransport::cancel(http::CallId id) {
  if (const auto call = calls_.find(id); call != calls_.end()) {
    Error error = make_error(ErrorCode::kCancelled, "cancelled");
    error.maybe_applied = true;
    finish(CallPtr(call->second), std::move(error));
  }
  if (const auto stream = streams_.find(id); stream != streams_.end()) {
    end(StreamPtr(stream->second), make_error(ErrorCode::kCancelled, "cancelled"));
  }
}

void SimTransport::die() {
  dead_ = true;
  while (!calls_.empty()) cancel(calls_.begin()->first);
  while (!streams_.empty()) cancel(streams_.begin()->first);
  *alive_ = false;
}

// ---- Streams.

struct SimTransport::Stream {
  struct Piece {
    Duration due;
    std::string line;
    std::function<void()> what;  // instead of a line: the head, or the end
  };
  http::CallId id = 0;
  http::StreamRequest request;
  http::StreamHandlers handlers;
  Delivery delivery;
  SteadyTime sent{};
  std::int64_t raised = 0;  // see Network::versions_from
  WatchId watch = 0;
  bool closed = false;  // it ended; on_end is posted
  bool silent = false;
  Duration silent_since{0};
  TimerId timer = 0;  // until it opens, then for its idleness
  Scheduler::EventId server_end = 0;
  std::deque<Piece> pipe;
  bool flush_pending = false;
  Duration last_due{0};
};

SimTransport::~SimTransport() {
  *alive_ = false;
  for (const auto& [id, stream] : streams_) stream->pipe.clear();
  std::erase(network_.transports_, this);
}

http::CallId SimTransport::open(http::StreamRequest request, http::StreamHandlers handlers) {
  const auto stream = std::make_shared<Stream>();
  stream->id = next_id_++;
  stream->handlers = std::move(handlers);
  stream->request = std::move(request);
  streams_.emplace(stream->id, stream);
  if (dead_) {
    end(stream, make_error(ErrorCode::kCancelled, "the process is dead"));
    return stream->id;
  }
  ++network_.requests_;
  if (network_.versions_from) {
    stream->raised = network_.versions_from(stream->request.target);
    stream->request.target = shift_versions(std::move(stream->request.target), -stream->raised);
  }
  stream->sent = loop_.now();
  stream->delivery.request = {"holdfast-" + std::to_string(replica_), "GET", stream->request.target,
                              "", ""};
  stream->delivery.replica = replica_;
  stream->delivery.life = life_;
  stream->delivery.sent = network_.scheduler_.now();
  arm_idle(stream, stream->request.open_timeout);
  const Network::Cut cut = network_.cut_of(replica_);
  if (cut == Network::Cut::kSilent) return stream->id;
  Duration delay = network_.latency();
  if (cut == Network::Cut::kRefused) {
    network_.scheduler_.after(delay, [this, stream, alive = alive_] {
      if (*alive) end(stream, transient("connection refused", false));
    });
    return stream->id;
  }
  if (const auto lost = network_.strikes_.strike(Act::kLoseRequest, replica_)) return stream->id;
  if (const auto late = network_.strikes_.strike(Act::kDelayRequest, replica_)) {
    delay += drawn_delay(*late);
  }
  network_.scheduler_.after(delay, [this, stream, alive = alive_] {
    if (*alive) arrive(stream);
  });
  return stream->id;
}

void SimTransport::arrive(const StreamPtr& stream) {
  if (stream->closed) return;
  Strikes& strikes = network_.strikes_;
  std::optional<ApiAnswer> refused;
  if (strikes.strike(Act::kRefuse429, replica_)) {
    refused = refusal(429, "TooManyRequests", "too many requests", 1);
  } else if (strikes.strike(Act::kRefuse403, replica_)) {
    refused = refusal(403, "Forbidden", "forbidden");
  } else if (strikes.strike(Act::kRefuse500, replica_)) {
    refused = refusal(500, "InternalError", "an error on the server");
  } else if (strikes.strike(Act::kRefuse503, replica_) ||
             (network_.refuses && network_.refuses(stream->delivery))) {
    refused = refusal(503, "ServiceUnavailable", "unavailable");
  }
  if (refused) return opened(stream, Gateway::Opened{std::move(*refused), 0});
  WatchSink sink;
  sink.on_line = [this, stream, alive = alive_](std::string line) {
    if (!*alive || stream->silent) return;
    push(stream, nullptr, shift_versions(std::move(line), stream->raised));
  };
  sink.on_end = [this, stream, alive = alive_] {
    if (!*alive) return;
    stream->watch = 0;
    if (stream->silent) return;
    const bool cut_off = network_.gateway_.cutting_off();
    push(
        stream,
        [this, stream, cut_off] {
          end(stream, cut_off ? std::optional(transient("connection reset", true)) : std::nullopt);
        },
        "");
  };
  network_.gateway_.open(stream->delivery, std::move(sink),
                         [this, stream, alive = alive_,
                          &gateway = network_.gateway_](std::optional<Gateway::Opened> answer) {
                           if (*alive && !stream->closed) return opened(stream, std::move(answer));
                           // Nobody reads it any more.
                           if (answer && answer->id != 0) gateway.server().close_watch(answer->id);
                         });
}

void SimTransport::opened(const StreamPtr& stream, std::optional<Gateway::Opened> opened) {
  if (!opened) {
    push(
        stream, [this, stream] { end(stream, transient("connection reset", true)); }, "");
    return;
  }
  stream->watch = opened->id;
  Response head = response(opened->answer, stream->sent);
  if (head.status != 200) head.body = opened->answer.body;
  const auto begin = [this, stream, head] {
    Response now = head;
    now.received = loop_.now();
    loop_.post([stream, now] { stream->handlers.on_open(now); });
    if (now.status != 200) return end(stream, std::nullopt);
    arm_idle(stream, stream->request.idle_timeout);
  };
  // In front of lines that came with it.
  stream->last_due = std::max(stream->last_due, network_.scheduler_.now() + network_.latency());
  stream->pipe.push_front(
      {stream->pipe.empty() ? stream->last_due : stream->pipe.front().due, "", begin});
  if (!std::exchange(stream->flush_pending, true)) {
    network_.scheduler_.at(stream->pipe.front().due, [this, stream, alive = alive_] {
      if (*alive) flush(stream);
    });
  }
  if (opened->id == 0) return;
  const std::string limit = query_value(stream->request.target, "timeoutSeconds");
  if (limit.empty()) return;
  stream->server_end =
      network_.scheduler_.after(seconds(std::stol(limit)), [this, stream, alive = alive_] {
        if (!*alive || stream->watch == 0) return;
        stream->server_end = 0;
        network_.gateway_.server().close_watch(std::exchange(stream->watch, 0));
        if (!stream->silent)
          push(
              stream, [this, stream] { end(stream, std::nullopt); }, "");
      });
}

void SimTransport::push(const StreamPtr& stream, std::function<void()> what, std::string line) {
  if (stream->closed) return;
  if (network_.cut_of(replica_) == Network::Cut::kSilent) {
    // What is lost on a live connection is never made up for: the connection is done for.
    stream->silent = true;
    return;
  }
  Duration due = network_.scheduler_.now() + network_.latency();
  if (const auto slow = network_.strikes_.strike(Act::kSlowWatch, replica_)) {
    due += drawn_delay(*slow);
  }
  due = std::max(due, stream->last_due);
  stream->last_due = due;
  stream->pipe.push_back({due, std::move(line), std::move(what)});
  if (std::exchange(stream->flush_pending, true)) return;
  network_.scheduler_.at(due, [this, stream, alive = alive_] {
    if (*alive) flush(stream);
  });
}

void SimTransport::flush(const StreamPtr& stream) {
  stream->flush_pending = false;
  std::vector<std::any> lines;
  const auto hand_over = [&] {
    if (lines.empty()) return;
    loop_.post([stream, lines = std::exchange(lines, {})]() mutable {
      stream->handlers.on_lines(std::move(lines));
    });
    arm_idle(stream, stream->request.idle_timeout);
  };
  while (!stream->closed && !stream->pipe.empty() &&
         stream->pipe.front().due <= network_.scheduler_.now()) {
    Stream::Piece piece = std::move(stream->pipe.front());
    stream->pipe.pop_front();
    if (piece.what) {
      hand_over();
      piece.what();
    } else {
      lines.push_back(stream->request.decode(piece.line));
    }
  }
  if (!stream->closed) hand_over();
  if (stream->closed || stream->pipe.empty()) return;
  stream->flush_pending = true;
  network_.scheduler_.at(stream->pipe.front().due, [this, stream, alive = alive_] {
    if (*alive) flush(stream);
  });
}

void SimTransport::end(const StreamPtr& stream, std::optional<Error> error) {
  if (std::exchange(stream->closed, true)) return;
  streams_.erase(stream->id);
  stream->pipe.clear();  // what waits there holds the stream
  loop_.cancel(std::exchange(stream->timer, 0));
  network_.scheduler_.cancel(std::exchange(stream->server_end, 0));
  if (stream->watch != 0) network_.gateway_.server().close_watch(std::exchange(stream->watch, 0));
  loop_.post([stream, error = std::move(error)] {
    stream->handlers.on_end(error);
    stream->handlers = {};
  });
}

void SimTransport::arm_idle(const StreamPtr& stream, Duration limit) {
  loop_.cancel(stream->timer);
  stream->timer = loop_.call_after(limit, [this, stream] {
    stream->timer = 0;
    end(stream, transient("nothing came for too long", true));
  });
}

// ---- What breaks watches.

int Network::break_watches(int replica) {
  int broken = 0;
  for (SimTransport* const transport : transports_) {
    if (transport->dead_ || (replica >= 0 && transport->replica_ != replica)) continue;
    const auto streams = transport->streams_;
    for (const auto& [id, stream] : streams) {
      ++broken;
      transport->end(stream, transient("connection reset", true));
    }
  }
  return broken;
}

void Network::break_silent_watches() {
  for (SimTransport* const transport : transports_) {
    const auto streams = transport->streams_;
    for (const auto& [id, stream] : streams) {
      if (stream->silent) transport->end(stream, transient("connection reset", true));
    }
  }
}

int Network::silence_watches(int replica) {
  int silenced = 0;
  for (SimTransport* const transport : transports_) {
    if (transport->dead_ || (replica >= 0 && transport->replica_ != replica)) continue;
    for (const auto& [id, stream] : transport->streams_) {
      if (stream->watch == 0 || stream->silent) continue;
      ++silenced;
      stream->silent = true;
      stream->silent_since = scheduler_.now();
    }
  }
  return silenced;
}

std::vector<std::string> Network::silent_for_too_long() const {
  // timeoutSeconds is ten minutes at most, the idle limit 5 s more, on a clock that may be slow.
  constexpr Duration kLimit = std::chrono::seconds(605) * 10 / 9 + std::chrono::seconds(2);
  std::vector<std::string> found;
  for (const SimTransport* const transport : transports_) {
    if (transport->dead_ || transport->loop_.paused()) continue;
    for (const auto& [id, stream] : transport->streams_) {
      if (stream->silent && stream->silent_since != Duration::zero() &&
          scheduler_.now() - stream->silent_since > kLimit) {
        found.push_back("replica " + std::to_string(transport->replica_) + ": " +
                        stream->request.target);
      }
    }
  }
  return found;
}

}  // namespace holdfast::simulation
