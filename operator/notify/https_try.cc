#include "operator/notify/https_try.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "client/http/certificate_refusal.h"
#include "client/http/endpoint.h"
#include "client/http/retry_after.h"
#include "client/http/tls.h"
#include "client/http/tunnel.h"
#include "client/kube/base64.h"
#include "core/utf8.h"
#include "operator/notify/message.h"

namespace holdfast::notify {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace web = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kHeadLimit = 16 * 1024;
constexpr int kHttpsPort = 443;
constexpr std::size_t kProxyWords = 200;
constexpr int kMostInterimAnswers = 100;

class Try : public std::enable_shared_from_this<Try> {
 public:
  using Done = std::function<void(Result<Answer>)>;
  Try(asio::io_context& io, TrySettings settings, Message message, Done done)
      : settings_(std::move(settings)),
        message_(std::move(message)),
        done_(std::move(done)),
        io_(io),
        context_(asio::ssl::context::tls_client) {}

  void begin() {
    http::TlsConfig tls;
    tls.ca = settings_.ca;
    const Result<> trusted = http::apply_tls(context_.native_handle(), tls, settings_.host);
    if (!trusted.ok()) return done_(trusted.error());
    http::record_refusals(context_.native_handle(), settings_.host, refusal_);
    context_.set_verify_mode(asio::ssl::verify_peer);
    stream_.emplace(io_, context_);
    if (!http::is_ip_literal(settings_.host)) {
      SSL_set_tlsext_host_name(stream_->native_handle(), settings_.host.c_str());
    }
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(settings_.timeout);
    connect();
  }

 private:
  using Clock = std::chrono::steady_clock;

  beast::tcp_stream& lowest() { return beast::get_lowest_layer(*stream_); }

  // To the next address. One that is dead leaves time for those after it.
  void connect() {
    constexpr int kShares = 3;
    const std::string& address = settings_.addresses[place_];
    error_code error;
    asio::ip::address parsed = asio::ip::make_address(address, error);
    if (error) return not_connected(error);
    const bool is_last = place_ + 1 == settings_.addresses.size();
    const auto share = std::chrono::duration_cast<Clock::duration>(settings_.timeout) / kShares;
    lowest().expires_at(is_last ? deadline_ : std::min(deadline_, Clock::now() + share));
    int port = settings_.port;
    proxy_.says.clear();
    if (settings_.proxy) {
      const Result<> opened = open_tunnel(address);
      if (!opened.ok()) return done_(opened.error());
      parsed = asio::ip::address_v4::loopback();
      port = proxy_.tunnel->port();
    }
    lowest().async_connect(tcp::endpoint(parsed, static_cast<std::uint16_t>(port)),
                           [self = shared_from_this()](error_code failed) {
                             if (failed) return self->not_connected(failed);
                             self->proxy_.tunnel ? self->ask_tunnel() : self->connected();
                           });
  }

  // The proxy gets the address that was checked, and never the name. So it leads where this process
  // may connect, whatever the name means to the proxy.
  Result<> open_tunnel(const std::string& address) {
    Result<std::unique_ptr<http::Tunnel>> tunnel =
        http::Tunnel::open({address, settings_.port, settings_.proxy, ""});
    if (!tunnel.ok()) return tunnel.error();
    proxy_.tunnel = std::move(*tunnel);
    return Unit{};
  }

  void ask_tunnel() {
    const std::string login = std::string(http::Tunnel::kUser) + ":" + proxy_.tunnel->password();
    proxy_.asked = "CONNECT target HTTP/1.1\r\nHost: target\r\nProxy-Authorization: Basic " +
                   kube::base64_encode(login) + "\r\n\r\n";
    asio::async_write(lowest(), asio::buffer(proxy_.asked),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->not_connected(error);
                        self->read_tunnel();
                      });
  }

  void read_tunnel() {
    parser_.emplace();
    parser_->header_limit(kHeadLimit);
    parser_->skip(true);
    web::async_read_header(lowest(), buffer_, *parser_,
                           [self = shared_from_this()](error_code error, std::size_t) {
                             const auto& head = self->parser_->get();
                             if (!error && head.result_int() / 100 != 2) {
                               self->proxy_.says = std::string(head.reason());
                               error = asio::error::make_error_code(asio::error::host_unreachable);
                             }
                             if (error) return self->not_connected(error);
                             self->connected();
                           });
  }

  void connected() {
    lowest().expires_at(deadline_);
    shake_hands();
  }

  void not_connected(error_code error) {
    const bool is_last = place_ + 1 == settings_.addresses.size();
    const char* const what =
        settings_.proxy ? "it cannot be reached through the proxy" : "it cannot be reached";
    if (is_last || Clock::now() >= deadline_) return fail(what, error);
    settings_.report(settings_.addresses[place_], false);
    ++place_;
    close();
    connect();
  }

  void shake_hands() {
    stream_->async_handshake(asio::ssl::stream_base::client,
                             [self = shared_from_this()](error_code error) {
                               if (error) return self->fail("the TLS handshake failed", error);
                               self->send();
                             });
  }

  void send() {
    request_.method(web::verb::post);
    request_.target(settings_.path);
    request_.version(11);
    const bool is_v6 = settings_.host.find(':') != std::string::npos;
    const std::string host = is_v6 ? "[" + settings_.host + "]" : settings_.host;
    const std::string port =
        settings_.port == kHttpsPort ? "" : ":" + std::to_string(settings_.port);
    request_.set(web::field::host, host + port);
    request_.set(web::field::user_agent, "holdfast-operator");
    request_.set(web::field::content_type, kContentType);
    request_.set("webhook-id", message_.id);
    request_.set("webhook-timestamp", std::to_string(message_.timestamp));
    request_.set("webhook-signature", message_.signature);
    request_.keep_alive(false);
    request_.body() = message_.body;
    request_.prepare_payload();
    web::async_write(*stream_, request_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (error) return self->fail("the message cannot be sent", error);
                       self->receive();
                     });
  }

  void receive() {
    parser_.emplace();
    parser_->header_limit(kHeadLimit);
    // However long the body says that it is: nobody reads it.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    web::async_read_header(*stream_, buffer_, *parser_,
                           [self = shared_from_this()](error_code error, std::size_t) {
                             if (error) return self->fail("it gives no answer", error);
                             self->answered();
                           });
  }

  // RFC 9110, 15.2: any number of interim answers may come before the final one.
  bool is_interim() const {
    const auto& head = parser_->get();
    return head.result_int() / 100 == 1 && head.result() != web::status::switching_protocols;
  }

  void answered() {
    const auto& head = parser_->get();
    if (is_interim()) {
      if (++interim_answers_ <= kMostInterimAnswers) return receive();
      return fail("it gives no final answer",
                  asio::error::make_error_code(asio::error::message_size));
    }
    Answer answer;
    answer.status = head.result_int();
    const std::string pause(head[web::field::retry_after]);
    if (!pause.empty()) answer.retry_after = http::parse_retry_after(pause);
    close();
    settings_.report(settings_.addresses[place_], true);
    done_(answer);
  }

  void fail(const char* what, error_code error) {
    const std::string refused = refusal_->last();
    std::string why = std::string(what) + ": ";
    if (error == beast::error::timeout) {
      why += "no answer in time";
    } else if (!refused.empty()) {
      why += "its certificate was refused: " + refused;
    } else if (!proxy_.says.empty()) {
      why += clean_text(proxy_.says, kProxyWords);
    } else {
      why += error.message();
    }
    close();
    settings_.report(settings_.addresses[place_], false);
    done_(make_error(ErrorCode::kTransient, why));
  }

  void close() {
    error_code ignored;
    lowest().socket().close(ignored);
    buffer_.clear();
    proxy_.tunnel.reset();
  }

  const TrySettings settings_;
  const Message message_;
  const Done done_;
  const std::shared_ptr<http::CertificateRefusal> refusal_ =
      std::make_shared<http::CertificateRefusal>();
  asio::io_context& io_;
  asio::ssl::context context_;
  std::optional<beast::ssl_stream<beast::tcp_stream>> stream_;  // made once the context is set up
  std::size_t place_ = 0;                                       // of the address
  struct ThroughProxy {
    std::unique_ptr<http::Tunnel> tunnel;  // to that address
    std::string asked;                     // of the tunnel
    std::string says;                      // why it does not connect
  };
  ThroughProxy proxy_;
  Clock::time_point deadline_;
  web::request<web::string_body> request_;
  beast::flat_buffer buffer_;
  int interim_answers_ = 0;
  std::optional<web::response_parser<web::empty_body>> parser_;
};

}  // namespace

void begin_try(asio::io_context& io, TrySettings settings, Message message,
               const std::function<void(Result<Answer>)>& done) {
  // Without descriptors there is no reactor, nor what OpenSSL reads.
  try {
    std::make_shared<Try>(io, std::move(settings), std::move(message), done)->begin();
  } catch (const std::exception& exception) {
    done(make_error(ErrorCode::kTransient,
                    std::string("this try cannot begin: ") + exception.what()));
  }
}

}  // namespace holdfast::notify
