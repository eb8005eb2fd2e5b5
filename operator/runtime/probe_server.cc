#include "operator/runtime/probe_server.h"

#include <utility>  // Boost 1.74's awaitable.hpp misses it under C++20

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cassert>
#include <list>
#include <optional>
#include <thread>

#include "core/thread_annotations.h"

namespace holdfast::runtime {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

// After the answer, the server reads and drops further bytes for this long. A close with unread
// bytes would reset the connection, and the client could lose the answer.
constexpr std::chrono::milliseconds kLinger{500};
// Accepting failed (no file descriptors): the next try comes after this.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::chrono::steady_clock::duration steady(Duration duration) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration);
}

// Posts from other threads to the server's thread. stop() closes it.
struct Mailbox {
  Mutex mutex;
  asio::io_context* io HOLDFAST_GUARDED_BY(mutex) = nullptr;  // null: closed

  void post(std::function<void()> callback) {
    MutexLock lock(mutex);
    if (io != nullptr) asio::post(*io, std::move(callback));
  }
  void lead_to(asio::io_context* context) {
    MutexLock lock(mutex);
    io = context;
  }
};

struct Shared {
  const std::map<std::string, ProbeServer::Handler> handlers;
  const ProbeServer::Limits limits;
  const std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
};

// One connection: read a head, answer, close. On the server's thread.
class ProbeConnection : public std::enable_shared_from_this<ProbeConnection> {
 public:
  ProbeConnection(const Shared& shared, tcp::socket socket,
                  std::function<void(ProbeConnection*)> on_close)
      : shared_(shared),
        stream_(std::move(socket)),
        timer_(stream_.get_executor()),
        buffer_(shared.limits.header_bytes),
        on_close_(std::move(on_close)) {
    parser_.header_limit(shared.limits.header_bytes);
  }

  void start() {
    stream_.expires_after(steady(shared_.limits.connection));
    beast_http::async_read_header(
        stream_, buffer_, parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_head(error); });
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    error_code ignored;
    timer_.cancel(ignored);
    stream_.close();
    on_close_(this);  // may drop the last reference except the caller's
  }

 private:
  void on_head(error_code error) {
    if (closed_) return;
    if (error == beast_http::error::header_limit || error == beast_http::error::buffer_overflow) {
      return reply({431, "the request's header is longer than 8 KB\n"});
    }
    // Parser errors are the client's fault. Other errors mean that the client has gone.
    if (error &&
        error.category() == beast_http::make_error_code(beast_http::error::bad_method).category() &&
        error != beast_http::error::end_of_stream && error != beast_http::error::partial_message) {
      return reply({400, "not an HTTP request\n"});
    }
    if (error) return close();
    const auto& request = parser_.get();
    is_head_ = request.method() == beast_http::verb::head;
    const std::string target(request.target().substr(0, request.target().find('?')));
    const auto found = shared_.handlers.find(target);
    if (found == shared_.handlers.end()) return reply({404, not_found()});
    if (!is_head_ && request.method() != beast_http::verb::get) {
      return reply({405, "only GET and HEAD are answered\n"});
    }
    if (target.starts_with("/debug/") && !from_this_host()) {
      return reply({403, "answered on loopback only: use kubectl port-forward\n"});
    }
    ask(found->second);
  }

  bool from_this_host() {
    error_code error;
    const auto peer = stream_.socket().remote_endpoint(error);
    return !error && is_this_host(peer.address().to_string());
  }

  void ask(const ProbeServer::Handler& handler) {
    timer_.expires_after(steady(shared_.limits.answer));
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->reply({503, "the operator's loop did not answer in time\n"});
    });
    // The answer callback keeps only the mailbox alive, not the session.
    handler([mailbox = shared_.mailbox, weak = weak_from_this()](ProbeAnswer answer) {
      mailbox->post([weak, answer = std::move(answer)]() mutable {
        if (const auto self = weak.lock()) self->reply(std::move(answer));
      });
    });
  }

  std::string not_found() const {
    std::string text = "not found; there are:";
    for (const auto& [path, handler] : shared_.handlers) text += " " + path;
    return text + "\n";
  }

  void reply(ProbeAnswer answer) {
    if (closed_ || response_) return;
    error_code ignored;
    timer_.cancel(ignored);
    response_.emplace();
    response_->result(static_cast<unsigned>(answer.status));
    response_->version(11);
    response_->set(beast_http::field::content_type, answer.content_type);
    response_->set(beast_http::field::cache_control, "no-store");
    response_->set("X-Content-Type-Options", "nosniff");
    if (answer.status == 405) response_->set(beast_http::field::allow, "GET, HEAD");
    response_->keep_alive(false);
    response_->content_length(answer.body.size());
    if (!is_head_) response_->body() = std::move(answer.body);
    beast_http::async_write(
        stream_, *response_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_written(error); });
  }

  void on_written(error_code error) {
    if (closed_) return;
    if (error && error != beast_http::error::end_of_stream) return close();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    timer_.expires_after(kLinger);
    timer_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->close();
    });
    drain();
  }

  void drain() {
    stream_.async_read_some(asio::buffer(dropped_),
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (self->closed_) return;
                              if (error) return self->close();
                              self->drain();
                            });
  }

  const Shared& shared_;  // outlives the thread that this runs on
  beast::tcp_stream stream_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_;
  beast_http::request_parser<beast_http::empty_body> parser_;
  std::optional<beast_http::response<beast_http::string_body>> response_;
  std::array<char, 4096> dropped_{};
  std::function<void(ProbeConnection*)> on_close_;
  bool is_head_ = false;
  bool closed_ = false;
};

}  // namespace

struct ProbeServer::State {
  State(std::map<std::string, Handler> handlers, Limits limits)
      : shared{std::move(handlers), limits} {}

  Shared shared;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::list<std::shared_ptr<ProbeConnection>> sessions;  // oldest first
  std::thread thread;
  tcp::endpoint endpoint;
  bool stopping = false;  // the thread's

  error_code listen(const tcp::endpoint& at);
  void accept();
  void admit(tcp::socket socket);
};

error_code ProbeServer::State::listen(const tcp::endpoint& at) {
  error_code error;
  error_code ignored;
  acceptor.close(ignored);
  acceptor.open(at.protocol(), error);
  if (error) return error;
  acceptor.set_option(tcp::acceptor::reuse_address(true), ignored);
  // "All addresses" includes IPv4. On a host without IPv6, start() falls back to IPv4.
  if (at.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), ignored);
  acceptor.bind(at, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) endpoint = acceptor.local_endpoint(error);
  return error;
}

void ProbeServer::State::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (stopping) return;
    if (!error) {
      admit(std::move(socket));
      return accept();
    }
    pause.expires_after(kAcceptPause);
    pause.async_wait([this](error_code cancelled) {
      if (!cancelled && !stopping) accept();
    });
  });
}

void ProbeServer::State::admit(tcp::socket socket) {
  if (sessions.size() >= shared.limits.connections) {
    const std::shared_ptr<ProbeConnection> oldest = sessions.front();
    oldest->close();
  }
  const auto session =
      std::make_shared<ProbeConnection>(shared, std::move(socket), [this](ProbeConnection* closed) {
        sessions.remove_if([closed](const auto& one) { return one.get() == closed; });
      });
  sessions.push_back(session);
  session->start();
}

ProbeServer::ProbeServer(std::map<std::string, Handler> handlers, Limits limits)
    : state_(std::make_unique<State>(std::move(handlers), limits)) {}

ProbeServer::~ProbeServer() { stop(); }

Result<> ProbeServer::start(const std::string& host, std::uint16_t port) {
  assert(!state_->thread.joinable());
  error_code error;
  if (host.empty()) {
    error = state_->listen({asio::ip::address_v6::any(), port});
    if (error == asio::error::address_family_not_supported ||
        error == asio::error::no_protocol_option) {
      error = state_->listen({asio::ip::address_v4::any(), port});
    }
  } else {
    const auto address = asio::ip::make_address(host, error);
    if (!error) error = state_->listen({address, port});
  }
  if (error) {
    return make_error(ErrorCode::kTerminal, "cannot serve probes and metrics on " +
                                                (host.empty() ? "*" : host) + ":" +
                                                std::to_string(port) + ": " + error.message() +
                                                "; choose another address with --metrics-address");
  }
  state_->shared.mailbox->lead_to(&state_->io);
  state_->accept();
  state_->thread = std::thread([state = state_.get()] { state->io.run(); });
  return Unit{};
}

std::uint16_t ProbeServer::port() const { return state_->endpoint.port(); }

std::string ProbeServer::address() const {
  const auto& address = state_->endpoint.address();
  const std::string host = address.to_string();
  return (address.is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(port());
}

void ProbeServer::stop() {
  if (!state_->thread.joinable()) return;
  state_->shared.mailbox->lead_to(nullptr);
  asio::post(state_->io, [state = state_.get()] {
    state->stopping = true;
    error_code ignored;
    state->acceptor.close(ignored);
    state->pause.cancel(ignored);
    while (!state->sessions.empty()) {
      const std::shared_ptr<ProbeConnection> session = state->sessions.front();
      session->close();
    }
  });
  state_->thread.join();  // the thread runs until nothing is left to do
}

bool is_this_host(const std::string& address) {
  error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error) return false;
  if (!parsed.is_v6() || !parsed.to_v6().is_v4_mapped()) return parsed.is_loopback();
  return asio::ip::make_address_v4(asio::ip::v4_mapped, parsed.to_v6()).is_loopback();
}

ProbeServer::Handler answer_at_once(std::function<ProbeAnswer()> answer) {
  return [answer = std::move(answer)](const ProbeServer::Answer& done) { done(answer()); };
}

}  // namespace holdfast::runtime
