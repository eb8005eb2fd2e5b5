#include "client/http/cpprest_transport.h"

#include <array>
#include <deque>
#include <unordered_map>
#include <utility>

#include "client/http/cpprest_wire.h"
#include "client/http/endpoint.h"
#include "client/http/outbox.h"
#include "client/http/stream_inbox.h"

namespace holdfast::http {
namespace {

// Idle connections are dropped at most this often.
constexpr std::chrono::seconds kDropInterval{1};

struct PendingCall {
  Request request;
  Urgency urgency = Urgency::kOrdinary;
  ResponseHandler handler;
  SteadyTime expires{};
  SteadyTime sent{};     // once started
  TimerId deadline = 0;  // the timer's id
  bool started = false;
  CpprestWire::Cancel cancel;  // once started
};

struct OpenStream {
  StreamHandlers handlers;
  Duration idle_timeout{};
  SteadyTime sent{};
  TimerId timer = 0;  // until it opens, then for its idleness
  std::shared_ptr<StreamInbox> inbox;
  CpprestWire::Cancel cancel;
};

Error transient(const std::string& message, bool maybe_applied) {
  Error error = make_error(ErrorCode::kTransient, message);
  error.maybe_applied = maybe_applied;
  return error;
}

Error cancelled(bool maybe_applied) {
  Error error = make_error(ErrorCode::kCancelled, "cancelled");
  error.maybe_applied = maybe_applied;
  return error;
}

}  // namespace

struct CpprestTransport::Impl : std::enable_shared_from_this<CpprestTransport::Impl> {
  Impl(Loop& the_loop, const Config& config, std::unique_ptr<CpprestWire> the_wire)
      : loop(the_loop),
        limits{config.max_in_flight, config.max_in_flight + config.reserved,
               config.max_in_flight + 2 * config.reserved},
        max_waiting(config.max_waiting),
        max_stream_bytes(config.max_stream_bytes),
        wire(std::move(the_wire)),
        outbox(std::make_shared<Outbox>(the_loop)) {}

  std::deque<CallId>& queue_of(Urgency urgency) {
    return waiting[static_cast<std::size_t>(urgency)];
  }
  void start_waiting();
  void start(CallId id, PendingCall& call);
  void answer(CallId id, Result<Response> result);
  void on_deadline(CallId id);
  void connections_failed(SteadyTime sent);

  Result<CpprestWire::Cancel> open(CallId id, OpenStream& stream, const StreamRequest& request);
  void opened(CallId id, Response head);
  void drain(CallId id);
  void ended(CallId id, Response head, std::optional<Error> error);
  void watch_idleness(CallId id);
  void end_stream(CallId id, std::optional<Error> error);

  // Runs on the loop, unless the transport is gone.
  template <class Function>
  Loop::Callback while_alive(Function function) {
    return [weak = weak_from_this(), function = std::move(function)]() mutable {
      if (const auto self = weak.lock()) function(*self);
    };
  }

  Loop& loop;
  const std::array<std::size_t, kUrgencies> limits;  // of all in flight, for one of this urgency
  const std::size_t max_waiting;
  const std::size_t max_stream_bytes;
  const std::unique_ptr<CpprestWire> wire;
  const std::shared_ptr<Outbox> outbox;

  // Loop only.
  CallId next_id = 1;
  std::size_t in_flight = 0;
  std::optional<SteadyTime> dropped_at;                // the idle connections
  std::array<std::deque<CallId>, kUrgencies> waiting;  // by urgency
  std::unordered_map<CallId, PendingCall> calls;
  std::unordered_map<CallId, std::shared_ptr<OpenStream>> streams;
};

void CpprestTransport::Impl::start_waiting() {
  for (std::size_t urgency = kUrgencies; urgency-- > 0;) {
    std::deque<CallId>& queue = waiting[urgency];
    while (!queue.empty() && in_flight < limits[urgency]) {
      const CallId id = queue.front();
      queue.pop_front();
      const auto found = calls.find(id);
      if (found == calls.end()) continue;  // answered while it waited
      // Past its deadline, because this process was paused. Its timer answers it.
      if (loop.now() < found->second.expires) start(id, found->second);
    }
  }
}

void CpprestTransport::Impl::start(CallId id, PendingCall& call) {
  const SteadyTime sent = loop.now();
  outbox->begin();
  Result<CpprestWire::Cancel> begun =
      wire->send(std::move(call.request),
                 [weak = weak_from_this(), outbox = outbox, id, sent](Result<Response> result) {
                   if (result.ok()) result->sent = sent;
                   outbox->post([weak, id, sent, result = std::move(result)]() mutable {
                     const auto self = weak.lock();
                     if (!self) return;
                     --self->in_flight;
                     if (!result.ok() && result.error().code == ErrorCode::kTransient) {
                       self->connections_failed(sent);
                     }
                     self->answer(id, std::move(result));
                     self->start_waiting();
                   });
                   outbox->end();
                 });
  if (begun.ok()) {
    ++in_flight;
    call.started = true;
    call.sent = sent;
    call.cancel = std::move(begun).value();
    return;
  }
  outbox->end();
  loop.post(while_alive([id, error = begun.error()](Impl& self) { self.answer(id, error); }));
}

void CpprestTransport::Impl::answer(CallId id, Result<Response> result) {
  const auto found = calls.find(id);
  if (found == calls.end()) return;  // cancelled, or past its deadline
  const ResponseHandler handler = std::move(found->second.handler);
  loop.cancel(found->second.deadline);
  calls.erase(found);
  handler(std::move(result));
}

void CpprestTransport::Impl::on_deadline(CallId id) {
  const auto found = calls.find(id);
  if (found == calls.end()) return;
  // Answered at once, because a hanging name look-up may take long to notice the cancellation.
  const bool started = found->second.started;
  if (started) found->second.cancel();
  // Nothing slow stands behind a vital request, such as a webhook: it is the connection.
  if (started && found->second.urgency == Urgency::kVital) connections_failed(found->second.sent);
  answer(id, transient(started ? "no complete answer in time" : "too many requests in flight",
                       started));
}

// A cut breaks all connections, and the idle ones do not show it: each would cost a request. An
// exchange that began before the last drop says nothing about the connections since.
void CpprestTransport::Impl::connections_failed(SteadyTime sent) {
  if (dropped_at && (sent < *dropped_at || loop.now() - *dropped_at < kDropInterval)) return;
  dropped_at = loop.now();
  wire->drop_idle_connections();
}

Result<CpprestWire::Cancel> CpprestTransport::Impl::open(CallId id, OpenStream& stream,
                                                         const StreamRequest& request) {
  CpprestWire::StreamCallbacks callbacks;
  const auto weak = weak_from_this();
  const auto post_to_self = [weak, outbox = outbox](auto function) {
    outbox->post([weak, function]() mutable {
      if (const auto self = weak.lock()) function(*self);
    });
  };
  callbacks.on_head = [=](const Response& head) {
    if (head.status == 200) post_to_self([id, head](Impl& self) { self.opened(id, head); });
  };
  callbacks.done = [=, outbox = outbox](const Response& head, std::optional<Error> error) {
    post_to_self([id, head, error](Impl& self) { self.ended(id, head, error); });
    outbox->end();
  };
  stream.sent = loop.now();
  outbox->begin();
  Result<CpprestWire::Cancel> begun = wire->open(request, stream.inbox, std::move(callbacks));
  if (!begun.ok()) outbox->end();
  return begun;
}

void CpprestTransport::Impl::opened(CallId id, Response head) {
  const auto found = streams.find(id);
  if (found == streams.end()) return;
  const auto stream = found->second;  // the handler may cancel it
  head.sent = stream->sent;
  loop.cancel(stream->timer);
  stream->inbox->touch(loop.now());
  watch_idleness(id);
  stream->handlers.on_open(head);
}

void CpprestTransport::Impl::drain(CallId id) {
  const auto found = streams.find(id);
  if (found == streams.end()) return;
  const auto stream = found->second;
  StreamInbox::Batch batch = stream->inbox->take();
  if (!batch.lines.empty()) stream->handlers.on_lines(std::move(batch.lines));
  if (batch.error) return end_stream(id, batch.error);
  if (stream->inbox->paused()) stream->inbox->touch(loop.now());
  stream->inbox->resume();
}

void CpprestTransport::Impl::ended(CallId id, Response head, std::optional<Error> error) {
  drain(id);
  const auto found = streams.find(id);
  if (found == streams.end()) return;
  const auto stream = found->second;
  if (head.status != 0 && head.status != 200) {
    head.sent = stream->sent;
    stream->handlers.on_open(head);
  }
  end_stream(id, std::move(error));
}

void CpprestTransport::Impl::watch_idleness(CallId id) {
  const auto found = streams.find(id);
  if (found == streams.end()) return;
  OpenStream& stream = *found->second;
  const SteadyTime now = loop.now();
  // A stream that waits for us is not idle.
  if (stream.inbox->paused()) stream.inbox->touch(now);
  const SteadyTime limit = stream.inbox->last_activity().value_or(now) + stream.idle_timeout;
  if (limit <= now) {
    return end_stream(id,
                      transient("nothing came for " + human_duration(stream.idle_timeout), true));
  }
  stream.timer = loop.call_at(limit, while_alive([id](Impl& self) { self.watch_idleness(id); }));
}

void CpprestTransport::Impl::end_stream(CallId id, std::optional<Error> error) {
  const auto found = streams.find(id);
  if (found == streams.end()) return;
  const auto stream = found->second;
  streams.erase(found);
  loop.cancel(stream->timer);
  if (stream->cancel) stream->cancel();
  stream->inbox->close();
  stream->handlers.on_end(std::move(error));
}

CpprestTransport::CpprestTransport(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<CpprestTransport>> CpprestTransport::create(Loop& loop, Config config,
                                                                   Log log) {
  const Result<Endpoint> endpoint = parse_endpoint(config.base_url);
  if (!endpoint.ok()) return endpoint.error();
  CpprestWire::Config wire;
  wire.endpoint = *endpoint;
  wire.threads = config.threads;
  wire.proxy_url = config.proxy_url;
  if (wire.proxy_url.empty()) {
    wire.proxy_url = proxy_from_environment(*endpoint, process_environment);
  }
  if (!wire.proxy_url.empty()) {
    const Result<Proxy> proxy = parse_proxy(wire.proxy_url);
    if (proxy.ok()) log.info("a proxy is used", {{"proxy", proxy->url()}});
  }
  auto made = CpprestWire::create(std::move(wire), config.tls);
  if (!made.ok()) return made.error();
  auto impl = std::make_shared<Impl>(loop, config, std::move(made).value());
  return std::unique_ptr<CpprestTransport>(new CpprestTransport(std::move(impl)));
}

CpprestTransport::~CpprestTransport() {
  std::vector<CallId> ids;
  for (const auto& [id, call] : impl_->calls) ids.push_back(id);
  for (const auto& [id, stream] : impl_->streams) ids.push_back(id);
  for (const CallId id : ids) CpprestTransport::cancel(id);
  impl_->outbox->close();
}

CallId CpprestTransport::send(Request request, ResponseHandler handler) {
  Impl& impl = *impl_;
  const CallId id = impl.next_id++;
  std::deque<CallId>& queue = impl.queue_of(request.urgency);
  if (request.urgency == Urgency::kOrdinary && queue.size() >= impl.max_waiting) {
    impl.loop.post([handler = std::move(handler)] {
      handler(transient("too many requests wait already", false));
    });
    return id;
  }
  PendingCall call;
  call.expires = impl.loop.now() + request.timeout;
  call.deadline =
      impl.loop.call_at(call.expires, impl.while_alive([id](Impl& self) { self.on_deadline(id); }));
  queue.push_back(id);
  call.urgency = request.urgency;
  call.request = std::move(request);
  call.handler = std::move(handler);
  impl.calls.emplace(id, std::move(call));
  impl.start_waiting();
  return id;
}

CallId CpprestTransport::open(StreamRequest request, StreamHandlers handlers) {
  Impl& impl = *impl_;
  const CallId id = impl.next_id++;
  const auto stream = std::make_shared<OpenStream>();
  stream->handlers = std::move(handlers);
  stream->idle_timeout = request.idle_timeout;
  StreamInbox::Config inbox;
  inbox.max_line_bytes = request.max_line_bytes;
  inbox.max_waiting_bytes = impl.max_stream_bytes;
  inbox.decode = std::move(request.decode);
  inbox.wake = [outbox = impl.outbox, drain = impl.while_alive([id](Impl& self) {
    self.drain(id);
  })] { outbox->post(drain); };
  stream->inbox = std::make_shared<StreamInbox>(std::move(inbox));
  stream->timer = impl.loop.call_after(request.open_timeout, impl.while_alive([id](Impl& self) {
    self.end_stream(id, transient("the stream did not open in time", true));
  }));
  impl.streams.emplace(id, stream);
  Result<CpprestWire::Cancel> begun = impl.open(id, *stream, request);
  if (begun.ok()) {
    stream->cancel = std::move(begun).value();
  } else {
    impl.loop.post(
        impl.while_alive([id, error = begun.error()](Impl& self) { self.end_stream(id, error); }));
  }
  return id;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): cpprest's tasks own what it means

void CpprestTransport::cancel(CallId id) {
  Impl& impl = *impl_;
  const auto call = impl.calls.find(id);
  if (call != impl.calls.end()) {
    PendingCall taken = std::move(call->second);
    impl.calls.erase(call);
    impl.loop.cancel(taken.deadline);
    impl.loop.post([handler = std::move(taken.handler), started = taken.started] {
      handler(cancelled(started));
    });
    if (taken.cancel) taken.cancel();
  }
  const auto stream = impl.streams.find(id);
  if (stream != impl.streams.end()) {
    const auto taken = stream->second;
    impl.streams.erase(stream);
    impl.loop.cancel(taken->timer);
    impl.loop.post([taken] { taken->handlers.on_end(cancelled(true)); });
    if (taken->cancel) taken->cancel();
    taken->inbox->close();
  }
}

Result<> CpprestTransport::set_tls(TlsConfig tls) {
  Impl& impl = *impl_;
  Result<> made = impl.wire->set_tls(tls);
  if (!made.ok()) return made;
  std::vector<CallId> ids;
  for (const auto& [id, stream] : impl.streams) ids.push_back(id);
  for (const CallId id : ids) {
    impl.loop.post(impl.while_alive([id](Impl& self) {
      self.end_stream(id, transient("the connection is renewed: TLS material changed", true));
    }));
  }
  return made;
}

std::uint64_t CpprestTransport::descriptors_per_connection() const {
  return impl_->wire->descriptors_per_connection();
}
std::size_t CpprestTransport::unfinished() const { return impl_->outbox->unfinished(); }

}  // namespace holdfast::http
