#include "plugin/ui/web_server.h"

#include <utility>  // Boost 1.74's awaitable.hpp misses it under C++20

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <list>
#include <thread>

#include "core/utf8.h"

namespace holdfast::plugin {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using std::chrono::seconds;
using tcp = asio::ip::tcp;

constexpr std::uint32_t kHeaderBytes = 16 * 1024;
constexpr std::uint64_t kBodyBytes = 256 * 1024;
constexpr std::size_t kConnections = 64;
// One for each connection: a slow answer of the API server holds up nobody else.
constexpr std::size_t kWorkers = kConnections;
constexpr seconds kRequestLimit{10};
constexpr seconds kKeepAlive{60};
// A stream without news says so, so that both ends notice a dead connection.
constexpr int kTicksOfSilence = 60;

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      if (i + 2 >= text.size() || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) {
        return std::nullopt;
      }
      plain += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    }
  }
  return is_utf8(plain) ? std::optional(plain) : std::nullopt;
}

using Request = beast_http::request<beast_http::string_body>;

WebRequest request_of(const Request& request) {
  WebRequest plain;
  plain.method = std::string(request.method_string());
  const std::string target(request.target());
  const std::size_t mark = std::min(target.find('?'), target.size());
  plain.path = target.substr(0, mark);
  if (mark < target.size()) plain.query = parse_query(std::string_view(target).substr(mark + 1));
  for (const auto& field : request) {
    plain.headers.emplace(lower(std::string(field.name_string())), std::string(field.value()));
  }
  plain.body = request.body();
  return plain;
}

// What all connections share. The workers outlive none of it.
struct Shared {
  const WebServer::Handler handler;
  asio::io_context io{1};
  asio::thread_pool workers{kWorkers};
};

// One connection. On the server's thread, but for the handlers.
class WebConnection : public std::enable_shared_from_this<WebConnection> {
 public:
  WebConnection(Shared& shared, tcp::socket socket, std::function<void(WebConnection*)> on_close)
      : shared_(shared),
        stream_(std::move(socket)),
        timer_(stream_.get_executor()),
        buffer_(kHeaderBytes + kBodyBytes),
        on_close_(std::move(on_close)) {}

  void start() { read(kRequestLimit); }

  bool streams() const { return static_cast<bool>(events_); }

  void close() {
    if (closed_) return;
    closed_ = true;
    timer_.cancel();
    stream_.close();
    on_close_(this);  // may drop the last reference except the caller's
  }

 private:
  using Self = std::shared_ptr<WebConnection>;

  void read(seconds limit) {
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    parser_->body_limit(kBodyBytes);
    stream_.expires_after(limit);
    beast_http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
  }

  void on_read(error_code error) {
    if (closed_) return;
    if (error == beast_http::error::header_limit || error == beast_http::error::buffer_overflow) {
      return refuse({431, "text/plain", "the request's header is longer than 16 KB\n"});
    }
    if (error == beast_http::error::body_limit) {
      return refuse({413, "text/plain", "the request's body is longer than 256 KB\n"});
    }
    if (error) return close();
    is_head_ = parser_->get().method() == beast_http::verb::head;
    keep_alive_ = parser_->get().keep_alive();
    stream_.expires_never();
    on_worker([request = request_of(parser_->get()),
               &handler = shared_.handler] { return handler(request); },
              &WebConnection::answer);
  }

  // Calls `work` on a worker, and `then` with its value on the server's thread.
  template <class Work, class Value>
  void on_worker(Work work, void (WebConnection::*then)(Value)) {
    asio::post(shared_.workers, [self = shared_from_this(), work = std::move(work), then] {
      Value value{};
      try {
        value = work();
      } catch (const std::exception& exception) {
        // One request, and not the page.
        value = failed(exception, Value{});
      }
      asio::post(self->shared_.io, [self, value = std::move(value), then]() mutable {
        if (!self->closed_) ((*self).*then)(std::move(value));
      });
    });
  }

  static WebReply failed(const std::exception& exception, const WebReply&) {
    return {500, "text/plain", std::string("this is a bug: ") + exception.what() + "\n"};
  }
  static std::optional<std::string> failed(const std::exception&,
                                           const std::optional<std::string>&) {
    return std::nullopt;
  }

  void refuse(WebReply reply) {
    keep_alive_ = false;
    answer(std::move(reply));
  }

  void answer(WebReply reply) {
    events_ = std::move(reply.events);
    response_.emplace();
    response_->result(static_cast<unsigned>(reply.status));
    response_->version(11);
    response_->set(beast_http::field::content_type, reply.type);
    for (const auto& [name, value] : reply.headers) response_->set(name, value);
    if (events_) {
      // Its end is the connection's.
      response_->keep_alive(false);
      head_ = std::make_unique<Head>(*response_);
      beast_http::async_write_header(stream_, *head_,
                                     [self = shared_from_this()](error_code error, std::size_t) {
                                       if (error) return self->close();
                                       self->ask();
                                       self->watch_for_end();
                                     });
      return;
    }
    response_->keep_alive(keep_alive_);
    response_->content_length(reply.body.size());
    if (!is_head_) response_->body() = std::move(reply.body);
    stream_.expires_after(kRequestLimit);
    beast_http::async_write(
        stream_, *response_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_written(error); });
  }

  void on_written(error_code error) {
    if (closed_) return;
    if (error || !keep_alive_) return close();
    read(kKeepAlive);
  }

  // A browser that goes closes its side.
  void watch_for_end() {
    stream_.async_read_some(asio::buffer(&dropped_, 1),
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (self->closed_) return;
                              if (error) return self->close();
                              self->watch_for_end();
                            });
  }

  void ask() {
    if (closed_) return;
    on_worker(events_, &WebConnection::on_event);
  }

  void on_event(std::optional<std::string> event) {
    if (!event) return close();
    if (event->empty() && ++silent_ticks_ < kTicksOfSilence) return tick();
    silent_ticks_ = 0;
    event_ = event->empty() ? ":\n\n" : "data: " + *event + "\n\n";
    asio::async_write(stream_.socket(), asio::buffer(event_),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (self->closed_) return;
                        if (error) return self->close();
                        self->tick();
                      });
  }

  void tick() {
    timer_.expires_after(WebServer::kTick);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->ask();
    });
  }

  using Response = beast_http::response<beast_http::string_body>;
  using Head = beast_http::response_serializer<beast_http::string_body>;

  Shared& shared_;
  beast::tcp_stream stream_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_;
  std::optional<beast_http::request_parser<beast_http::string_body>> parser_;
  std::optional<Response> response_;
  std::unique_ptr<Head> head_;
  std::function<std::optional<std::string>()> events_;
  std::string event_;
  std::function<void(WebConnection*)> on_close_;
  int silent_ticks_ = 0;
  char dropped_ = 0;
  bool is_head_ = false;
  bool keep_alive_ = false;
  bool closed_ = false;
};

}  // namespace

struct WebServer::State {
  explicit State(Handler handler) : shared{std::move(handler)} {}

  Shared shared;
  tcp::acceptor acceptor{shared.io};
  std::list<std::shared_ptr<WebConnection>> connections;  // oldest first
  std::thread thread;
  bool stopping = false;  // the thread's

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (stopping) return;
      if (!error) admit(std::move(socket));
      accept();
    });
  }

  void admit(tcp::socket socket) {
    if (connections.size() >= kConnections) {
      const auto quiet = std::find_if(connections.begin(), connections.end(),
                                      [](const auto& one) { return !one->streams(); });
      const auto oldest = quiet == connections.end() ? *connections.begin() : *quiet;
      oldest->close();
    }
    connections.push_back(
        std::make_shared<WebConnection>(shared, std::move(socket), [this](WebConnection* closed) {
          connections.remove_if([closed](const auto& one) { return one.get() == closed; });
        }));
    const auto made = connections.back();
    made->start();
  }
};

WebServer::WebServer(Handler handler) : state_(std::make_unique<State>(std::move(handler))) {}

WebServer::~WebServer() { stop(); }

Result<> WebServer::listen(std::uint16_t port) {
  error_code error;
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(tcp::v4(), error);
  // After a restart the port may still have connections that end.
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind({asio::ip::address_v4::loopback(), port}, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return make_error(ErrorCode::kTerminal, "cannot serve on 127.0.0.1:" + std::to_string(port) +
                                                ": " + error.message() +
                                                "; choose another --port, or leave it out");
  }
  return Unit{};
}

void WebServer::serve() {
  state_->accept();
  state_->thread = std::thread([state = state_.get()] { state->shared.io.run(); });
}

std::uint16_t WebServer::port() const {
  error_code error;
  return state_->acceptor.local_endpoint(error).port();
}

void WebServer::stop() {
  if (!state_->thread.joinable()) return;
  asio::post(state_->shared.io, [state = state_.get()] {
    state->stopping = true;
    error_code ignored;
    state->acceptor.close(ignored);
    while (!state->connections.empty()) {
      const std::shared_ptr<WebConnection> one = state->connections.front();
      one->close();
    }
  });
  // Handlers that run post their answers, which find their connections closed.
  state_->shared.workers.join();
  state_->thread.join();
}

std::string query_of(const WebRequest& request, const char* name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::map<std::string, std::string> parse_query(std::string_view query) {
  std::map<std::string, std::string> values;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto name = decoded(part.substr(0, equals));
    const auto value = decoded(part.substr(std::min(equals + 1, part.size())));
    if (name && value && !name->empty()) values[*name] = *value;
  }
  return values;
}

}  // namespace holdfast::plugin
