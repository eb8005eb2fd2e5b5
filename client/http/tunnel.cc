// Boost 1.74's awaitable.hpp misses it under C++20.
#include <utility>

#include "client/http/tunnel.h"

#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "client/http/proxy_protocol.h"
#include "client/http/relay.h"
#include "client/http/tls.h"

namespace holdfast::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Of each step of an exchange with a proxy, and of the head that cpprestsdk sends.
constexpr std::size_t kHeadLimit = 16 * 1024;
// Until bytes are carried. Requests have shorter limits of their own.
constexpr std::chrono::seconds kOpenLimit{30};
constexpr std::size_t kPasswordBytes = 24;
// Accepting failed (no file descriptors): the next try comes after this.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::string random_password() {
  std::array<unsigned char, kPasswordBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return "";
  return base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

struct Tunnel::Impl {
  class Session;
  explicit Impl(Config the_config) : config(std::move(the_config)) {}

  Result<> start();
  Result<> trust(const std::string& ca);
  void accept();

  const Config config;
  const std::string password = random_password();
  // Of an https:// proxy. Null: there is none. The thread's, once it runs.
  std::shared_ptr<asio::ssl::context> tls;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer accept_pause{io};
  int listens_at = 0;
  std::thread thread;
};

// One connection of cpprestsdk. Each step ends with fail(), or begins the next one.
class Tunnel::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Impl& tunnel, tcp::socket client)
      : tunnel_(tunnel), config_(tunnel.config), client_(std::move(client)) {
    if (tunnel.tls) tls_.emplace(socket_, *tunnel.tls);
  }

  void begin() {
    timer_.expires_after(kOpenLimit);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->close();
    });
    asio::async_read_until(client_, asio::dynamic_buffer(head_, kHeadLimit), "\r\n\r\n",
                           [self = shared_from_this()](error_code error, std::size_t) {
                             if (error) return self->close();
                             self->asked();
                           });
  }

 private:
  using Step = std::function<void()>;

  void asked() {
    const std::string login = base64(std::string(kUser) + ":" + tunnel_.password);
    const bool is_ours = head_.find("Proxy-Authorization: Basic " + login + "\r\n") != head_.npos;
    if (!is_ours || head_.rfind("CONNECT ", 0) != 0) return fail("407", "not for you");
    const std::string& host = config_.proxy ? config_.proxy->at.host : config_.host;
    const int port = config_.proxy ? config_.proxy->at.port : config_.port;
    resolver_.async_resolve(
        host, std::to_string(port), tcp::resolver::numeric_service,
        [self = shared_from_this(), host](error_code error, tcp::resolver::results_type found) {
          if (error) return self->fail(host + " has no address", error);
          asio::async_connect(self->socket_, found,
                              [self, host](error_code failed, const tcp::endpoint&) {
                                if (failed) return self->fail(host + " cannot be reached", failed);
                                self->connected();
                              });
        });
  }

  void connected() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    client_.set_option(tcp::no_delay(true), ignored);
    if (!config_.proxy) return carry();
    if (config_.proxy->kind == Proxy::Kind::kSocks5) return greet();
    if (!tls_) return ask_http();
    if (!is_ip_literal(config_.proxy->at.host)) {
      SSL_set_tlsext_host_name(tls_->native_handle(), config_.proxy->at.host.c_str());
    }
    tls_->async_handshake(asio::ssl::stream_base::client,
                          [self = shared_from_this()](error_code error) {
                            if (error) return self->fail("no TLS with the proxy", error);
                            self->ask_http();
                          });
  }

  // ---- HTTP.

  void ask_http() {
    write(connect_request(*config_.proxy, config_.host, config_.port), [this] { read_http(); });
  }

  // Byte by byte, because what follows the head belongs to the server.
  void read_http() {
    if (reply_.size() > kHeadLimit) return fail("the proxy's answer is too long");
    read(1, [this] {
      if (reply_.size() < 4 || reply_.compare(reply_.size() - 4, 4, "\r\n\r\n") != 0) {
        return read_http();
      }
      const std::size_t code = reply_.find(' ');
      if (reply_.rfind("HTTP/1.", 0) != 0 || code == std::string::npos) {
        return fail("the proxy speaks no HTTP/1.1");
      }
      if (reply_.compare(code, 2, " 2") == 0) return carry();
      const std::string line = reply_.substr(code + 1, reply_.find('\r') - code - 1);
      fail("the proxy answered " + line);
    });
  }

  // ---- SOCKS.

  void greet() {
    write(socks_greeting(*config_.proxy), [this] {
      read(2, [this] {
        if (reply_[0] != 5) return fail("the proxy speaks no SOCKS5");
        if (reply_[1] == 0) return ask_socks();
        if (reply_[1] == 2) return log_in();
        fail("the proxy wants another login");
      });
    });
  }

  void log_in() {
    write(socks_login(*config_.proxy), [this] {
      reply_.clear();
      read(2, [this] {
        if (reply_[1] != 0) return fail("the proxy refuses the login");
        ask_socks();
      });
    });
  }

  void ask_socks() {
    write(socks_request(config_.host, config_.port), [this] {
      reply_.clear();
      // Up to the first byte of the address, which is its length if it is a name.
      read(5, [this] {
        if (reply_[0] != 5) return fail("the proxy speaks no SOCKS5");
        if (reply_[1] != 0)
          return fail(std::string("the proxy answered: ") + socks_failure(reply_[1]));
        read(socks_reply_rest(reply_), [this] { carry(); });
      });
    });
  }

  // ---- Then bytes.

  void carry() {
    answer_ = "HTTP/1.1 200 Connection established\r\n\r\n";
    asio::async_write(client_, asio::buffer(answer_),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->close();
                        self->timer_.cancel();
                        const auto shut = [session = self.get()] { session->close(); };
                        if (self->tls_) {
                          self->through_tls_.emplace(self->client_, *self->tls_, shut);
                          self->through_tls_->begin(self);
                        } else {
                          self->through_.emplace(self->client_, self->socket_, shut);
                          self->through_->begin(self);
                        }
                      });
  }

  void write(std::string data, Step next) {
    request_ = std::move(data);
    const auto done = [self = shared_from_this(), next](error_code error, std::size_t) {
      if (error) return self->fail("the proxy takes nothing", error);
      next();
    };
    if (tls_) {
      asio::async_write(*tls_, asio::buffer(request_), done);
    } else {
      asio::async_write(socket_, asio::buffer(request_), done);
    }
  }

  // Adds so many bytes to the reply.
  void read(std::size_t size, Step next) {
    const auto done = [self = shared_from_this(), next, size](error_code error, std::size_t) {
      if (error) return self->fail("the proxy answers nothing", error);
      self->reply_.append(self->piece_.data(), size);
      next();
    };
    if (tls_) {
      asio::async_read(*tls_, asio::buffer(piece_.data(), size), done);
    } else {
      asio::async_read(socket_, asio::buffer(piece_.data(), size), done);
    }
  }

  void fail(const std::string& why, error_code error) { fail(why + ": " + error.message()); }
  void fail(const std::string& why) { fail("502", why); }
  // cpprestsdk shows the line.
  void fail(const char* status, const std::string& why) {
    answer_ = std::string("HTTP/1.1 ") + status + " " + why + "\r\n\r\n";
    asio::async_write(client_, asio::buffer(answer_),
                      [self = shared_from_this()](error_code, std::size_t) { self->close(); });
  }

  void close() {
    error_code ignored;
    timer_.cancel();
    resolver_.cancel();
    client_.close(ignored);
    socket_.close(ignored);
  }

  Impl& tunnel_;
  const Config& config_;
  tcp::socket client_;
  tcp::socket socket_{tunnel_.io};
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  tcp::resolver resolver_{tunnel_.io};
  asio::steady_timer timer_{tunnel_.io};
  std::string head_;
  std::string request_;
  std::string reply_;
  std::string answer_;
  std::array<char, 1 + kSocksTextLimit + 2> piece_{};
  std::optional<Relay<tcp::socket, tcp::socket>> through_;
  std::optional<Relay<tcp::socket, asio::ssl::stream<tcp::socket&>>> through_tls_;
};

Result<> Tunnel::Impl::start() {
  if (password.empty()) return make_error(ErrorCode::kTerminal, "OpenSSL gives no random bytes");
  if (config.proxy && config.proxy->kind == Proxy::Kind::kSocks5 &&
      (config.proxy->user.size() > kSocksTextLimit ||
       config.proxy->password.size() > kSocksTextLimit)) {
    return make_error(ErrorCode::kInvalid,
                      "the user or password of the SOCKS proxy is longer than 255 bytes");
  }
  const Result<> trusted = trust(config.ca);
  if (!trusted.ok()) return trusted;
  error_code error;
  const tcp::endpoint loopback(asio::ip::address_v4::loopback(), 0);
  acceptor.open(loopback.protocol(), error);
  if (!error) acceptor.bind(loopback, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) listens_at = acceptor.local_endpoint(error).port();
  if (error) return make_error(ErrorCode::kTransient, "no port on loopback: " + error.message());
  accept();
  thread = std::thread([this] { io.run(); });
  return Unit{};
}

Result<> Tunnel::Impl::trust(const std::string& ca) {
  if (!config.proxy || config.proxy->kind != Proxy::Kind::kHttps) return Unit{};
  const auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  const Result<> applied = apply_tls(made->native_handle(), TlsConfig(), config.proxy->at.host);
  if (!applied.ok()) return applied;
  const Result<> trusted = trust_too(made->native_handle(), ca);
  if (!trusted.ok()) return trusted;
  made->set_verify_mode(asio::ssl::verify_peer);
  asio::post(io, [this, made] { tls = made; });
  return Unit{};
}

void Tunnel::Impl::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket client) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      std::make_shared<Session>(*this, std::move(client))->begin();
      return accept();
    }
    accept_pause.expires_after(kAcceptPause);
    accept_pause.async_wait([this](error_code failed) {
      if (!failed) accept();
    });
  });
}

Tunnel::Tunnel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Tunnel::~Tunnel() {
  impl_->io.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

Result<std::unique_ptr<Tunnel>> Tunnel::open(Config config) {
  // Without descriptors or threads the io_context, its reactor and the thread throw.
  try {
    auto impl = std::make_unique<Impl>(std::move(config));
    const Result<> started = impl->start();
    if (!started.ok()) return started.error();
    return std::unique_ptr<Tunnel>(new Tunnel(std::move(impl)));
  } catch (const std::exception& exception) {
    return make_error(ErrorCode::kTransient, std::string("no way to it: ") + exception.what());
  }
}

Result<> Tunnel::trust(const std::string& ca) {
  try {
    return impl_->trust(ca);
  } catch (const std::exception& exception) {
    return make_error(ErrorCode::kTransient, exception.what());
  }
}

int Tunnel::port() const { return impl_->listens_at; }
const std::string& Tunnel::password() const { return impl_->password; }

}  // namespace holdfast::http
