// Boost 1.74's awaitable.hpp misses it under C++20.
#include <utility>

#include "client/http/cpprest_wire.h"

#include <cpprest/http_client.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>

#include "client/http/certificate_refusal.h"
#include "client/http/cpprest_sink.h"
#include "client/http/retry_after.h"
#include "client/http/tls.h"
#include "core/steady_now.h"

// Replaces OpenSSL's own function. cpprestsdk makes every connection read all of the system's CAs,
// even if the cluster's CA replaces them at once. That costs milliseconds of the loop's time and a
// megabyte for each connection. apply_tls() reads them where they are needed.
extern "C" int SSL_CTX_set_default_verify_paths(SSL_CTX*) { return 1; }

namespace holdfast::http {
namespace {

using web::http::http_request;
using web::http::http_response;
using web::http::client::http_client;
using web::http::client::http_client_config;

// cpprestsdk's own limit for one step of I/O. Exchanges have our limits, so this one only ends
// steps that cannot be cancelled (a CONNECT to a proxy).
constexpr std::chrono::seconds kRequestStepLimit{120};
constexpr std::chrono::seconds kStreamStepLimit{1800};

// The results of one request's I/O.
struct Exchange {
  std::atomic<bool> left{false};  // the request's head was written
  bool too_large = false;
  std::size_t size = 0;
  std::unique_ptr<BodyReader> reader;
  Response response;

  // The status may not be known yet, so a reader gets all bytes. False: too large.
  bool take(std::string_view piece, std::size_t limit) {
    size += piece.size();
    too_large = too_large || size > limit;
    if (too_large) return false;
    std::string& body = response.body;
    if (!reader) {
      body.append(piece);
      return true;
    }
    body.append(piece.substr(0, kMaxKeptBytes - std::min(body.size(), kMaxKeptBytes)));
    reader->read(piece);
    return true;
  }

  void decode_body(const std::function<std::any(std::string&&)>& decode) {
    if (reader) {
      response.decoded = reader->finish();
    } else if (decode) {
      response.decoded = decode(std::move(response.body));
    } else {
      return;
    }
    response.body.clear();
  }
};

std::string header_value(const http_response& response, const char* name) {
  const auto found = response.headers().find(name);
  return found == response.headers().end() ? "" : found->second;
}

void read_head(const http_response& from, Response& response) {
  response.status = from.status_code();
  response.date = parse_http_date(header_value(from, "Date"));
  response.retry_after = parse_retry_after(header_value(from, "Retry-After"));
  response.received = steady_now();
}

// cpprestsdk reports OpenSSL's error as a number, with little text.
std::string explain(const web::http::http_exception& exception, const CertificateRefusal& refusal) {
  const auto code = static_cast<unsigned long>(exception.error_code().value());
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return exception.what();
  const std::string why = refusal.last();
  if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED && !why.empty()) {
    return "the server's certificate is refused: " + why;
  }
  const char* const reason = ERR_reason_error_string(code);
  return exception.what() + (reason == nullptr ? std::string() : std::string(": ") + reason);
}

Error lost(const std::exception_ptr& exception, bool maybe_applied,
           const CertificateRefusal& refusal) {
  Error error = make_error(ErrorCode::kTransient, "the connection failed");
  error.maybe_applied = maybe_applied;
  try {
    std::rethrow_exception(exception);
  } catch (const web::http::http_exception& known) {
    error.message = explain(known, refusal);
  } catch (const std::exception& known) {
    error.message = known.what();
  } catch (...) {  // cpprestsdk's cancellations are no std::exception
  }
  return error;
}

Error unsendable(const std::exception& exception) {
  return make_error(ErrorCode::kTerminal,
                    std::string("the request cannot be sent: ") + exception.what());
}

http_request make_request(const std::string& method, const std::string& target,
                          const Headers& headers, const std::string& server_name) {
  http_request request(method);
  request.set_request_uri(web::uri(target));
  for (const auto& [name, value] : headers) request.headers().add(name, value);
  // cpprestsdk verifies against this header, and sends it as the server's name.
  if (!server_name.empty()) request.headers().add("Host", server_name);
  return request;
}

bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

// With a tunnel the name in the URL leads nowhere: cpprestsdk takes no address there.
std::string base_url(Endpoint endpoint) {
  if (is_v6(endpoint.host)) endpoint.host = "ipv6.invalid";
  return endpoint.url();
}

std::optional<web::web_proxy> make_proxy(const CpprestWire::Config& wire, const Tunnel* tunnel) {
  if (tunnel != nullptr) {
    web::web_proxy proxy(web::uri("http://127.0.0.1:" + std::to_string(tunnel->port())));
    proxy.set_credentials(web::credentials(Tunnel::kUser, tunnel->password()));
    return proxy;
  }
  if (wire.proxy_url.empty()) return std::nullopt;
  const Result<Proxy> parsed = parse_proxy(wire.proxy_url);
  if (!parsed.ok()) throw std::invalid_argument(parsed.error().message);
  web::web_proxy proxy(web::uri(parsed->url()));
  if (!parsed->at.user_info.empty()) {
    proxy.set_credentials(web::credentials(parsed->user, parsed->password));
  }
  return proxy;
}

http_client_config make_config(const CpprestWire::Config& wire, const Tunnel* tunnel,
                               const TlsConfig& tls,
                               const std::shared_ptr<CertificateRefusal>& refusal,
                               std::chrono::seconds step_limit) {
  http_client_config config;
  config.set_timeout(step_limit);
  config.set_max_redirects(0);  // a redirect would carry the token to another host
  if (const auto proxy = make_proxy(wire, tunnel)) config.set_proxy(*proxy);
  const std::string host = tls.server_name.empty() ? wire.endpoint.host : tls.server_name;
  config.set_validate_certificates(!tls.insecure_skip_verify);
  config.set_tlsext_sni_enabled(!is_ip_literal(host));
  config.set_ssl_context_callback([tls, host, refusal](boost::asio::ssl::context& context) {
    const Result<> applied = apply_tls(context.native_handle(), tls, host);
    if (!applied.ok()) throw std::runtime_error(applied.error().message);
    record_refusals(context.native_handle(), host, refusal);
  });
  return config;
}

}  // namespace

struct CpprestWire::Clients {
  std::shared_ptr<http_client> requests;
  std::shared_ptr<http_client> gzip_requests;
  std::shared_ptr<http_client> streams;
  std::shared_ptr<CertificateRefusal> refusal;
};

CpprestWire::CpprestWire(Config config) : config_(std::move(config)) {}
CpprestWire::~CpprestWire() = default;

Result<std::unique_ptr<CpprestWire>> CpprestWire::create(Config config, const TlsConfig& tls) {
  static std::once_flag pool_once;
  std::call_once(pool_once, [&config] {
    try {
      crossplat::threadpool::initialize_with_threads(static_cast<std::size_t>(config.threads));
    } catch (const std::exception&) {  // already started: its threads stay as they are
    }
  });
  std::unique_ptr<CpprestWire> wire(new CpprestWire(std::move(config)));
  const Result<> opened = wire->open_tunnel(tls);
  if (!opened.ok()) return opened.error();
  const Result<> made = wire->set_tls(tls);
  if (!made.ok()) return made.error();
  return wire;
}

// cpprestsdk verifies an address only as it stands in the certificate, without brackets.
std::string CpprestWire::host_header() const {
  if (!tls_.server_name.empty()) return tls_.server_name;
  return is_v6(config_.endpoint.host) ? config_.endpoint.host : "";
}

Result<> CpprestWire::open_tunnel(const TlsConfig& tls) {
  Tunnel::Config tunnel;
  tunnel.host = config_.endpoint.host;
  tunnel.port = config_.endpoint.port;
  tunnel.ca = tls.ca;
  if (!config_.proxy_url.empty()) {
    Result<Proxy> proxy = parse_proxy(config_.proxy_url);
    if (!proxy.ok()) return proxy.error();
    tunnel.proxy = std::move(*proxy);
  }
  const bool is_plain_proxy =
      !tunnel.proxy || (tunnel.proxy->kind == Proxy::Kind::kHttp && !is_v6(tunnel.proxy->at.host));
  if (is_plain_proxy && !is_v6(tunnel.host)) return Unit{};
  if (!config_.endpoint.tls) {
    return make_error(
        ErrorCode::kInvalid,
        "an IPv6 address, or a proxy that is not http://, needs https:// to the server");
  }
  auto opened = Tunnel::open(std::move(tunnel));
  if (!opened.ok()) return opened.error();
  tunnel_ = std::move(*opened);
  return Unit{};
}

Result<> CpprestWire::set_tls(const TlsConfig& tls) {
  const Result<> valid = validate_tls(tls);
  if (!valid.ok()) return valid;
  if (tunnel_ && tls.ca != tls_.ca) {
    const Result<> trusted = tunnel_->trust(tls.ca);
    if (!trusted.ok()) return trusted;
  }
  Result<> made = make_clients(tls);
  if (made.ok()) tls_ = tls;
  return made;
}

void CpprestWire::drop_idle_connections() {
  // If it fails, the old ones stay.
  [[maybe_unused]] const Result<> made = make_clients(tls_);
}

Result<> CpprestWire::make_clients(const TlsConfig& tls) {
  try {
    const auto refusal = std::make_shared<CertificateRefusal>();
    const web::uri base(base_url(config_.endpoint));
    const http_client_config requests =
        make_config(config_, tunnel_.get(), tls, refusal, kRequestStepLimit);
    http_client_config gzip_requests = requests;
    gzip_requests.set_request_compressed_response(true);
    const http_client_config streams =
        make_config(config_, tunnel_.get(), tls, refusal, kStreamStepLimit);
    clients_ = std::make_unique<Clients>(Clients{
        std::make_shared<http_client>(base, requests),
        std::make_shared<http_client>(base, gzip_requests),
        std::make_shared<http_client>(base, streams),
        refusal,
    });
  } catch (const std::exception& exception) {
    return make_error(ErrorCode::kInvalid, exception.what());
  }
  return Unit{};
}

Result<CpprestWire::Cancel> CpprestWire::send(Request asked, Done done) {
  const auto exchange = std::make_shared<Exchange>();
  const auto client = asked.accept_gzip ? clients_->gzip_requests : clients_->requests;
  http_request request;
  try {
    request = make_request(asked.method, asked.target, asked.headers, host_header());
  } catch (const std::exception& exception) {
    return unsendable(exception);
  }
  if (!asked.body.empty()) {
    std::string content_type = "application/octet-stream";  // set_body() insists on one
    request.headers().match("Content-Type", content_type);
    request.set_body(std::move(asked.body), content_type);
    request.headers()["Content-Type"] = content_type;
  }
  // The first report of an upload means that the head was written.
  request.set_progress_handler(
      [exchange](web::http::message_direction::direction direction, utility::size64_t) {
        if (direction == web::http::message_direction::upload) exchange->left = true;
      });
  if (asked.make_reader) exchange->reader = asked.make_reader();
  const pplx::cancellation_token_source cancellation;
  request.set_response_stream(output([exchange, cancellation, limit = asked.max_response_bytes](
                                         const char* data, std::size_t size) {
    if (!exchange->take({data, size}, limit)) cancellation.cancel();
    return pplx::task_from_result(size);
  }));
  // Holds the client, so that its connections live while they are in use.
  const auto finish = [exchange, client, refusal = clients_->refusal,
                       decode = std::move(asked.decode), limit = asked.max_response_bytes,
                       done = std::move(done)](const pplx::task<http_response>& ended) {
    Response& response = exchange->response;
    std::optional<Error> error;
    try {
      ended.get();
      if (!exchange->too_large && response.status / 100 == 2) exchange->decode_body(decode);
    } catch (...) {
      error = lost(std::current_exception(), exchange->left, *refusal);
    }
    if (exchange->too_large) {
      error = make_error(ErrorCode::kTerminal,
                         "the answer is larger than " + std::to_string(limit) + " bytes");
      error->maybe_applied = exchange->left;
    }
    if (error) {
      done(std::move(*error));
    } else {
      done(std::move(response));
    }
  };
  client->request(request, cancellation.get_token())
      .then([exchange](const pplx::task<http_response>& head) {
        const http_response response = head.get();
        read_head(response, exchange->response);
        return response.content_ready();
      })
      .then(finish);
  return Cancel([cancellation] { cancellation.cancel(); });
}

namespace {

// The API server puts its length before each protobuf event of a watch.
StreamInbox::Framing framing_of(const http_response& response) {
  const bool protobuf =
      response.headers().content_type().starts_with("application/vnd.kubernetes.protobuf");
  return protobuf ? StreamInbox::Framing::kFrames : StreamInbox::Framing::kLines;
}

}  // namespace

Result<CpprestWire::Cancel> CpprestWire::open(const StreamRequest& asked,
                                              const std::shared_ptr<StreamInbox>& inbox,
                                              StreamCallbacks callbacks) {
  const auto client = clients_->streams;
  http_request request;
  try {
    request = make_request("GET", asked.target, asked.headers, host_header());
  } catch (const std::exception& exception) {
    return unsendable(exception);
  }
  request.set_response_stream(output([inbox](const char* data, std::size_t size) {
    const pplx::task_completion_event<std::size_t> handled;
    const bool go_on = inbox->feed(
        data, size, [handled, size] { handled.set(size); }, steady_now());
    return go_on ? pplx::task_from_result(size) : pplx::create_task(handled);
  }));
  const auto head = std::make_shared<Response>();
  const auto on_head =
      [inbox, head, report = std::move(callbacks.on_head)](const pplx::task<http_response>& came) {
        const http_response response = came.get();
        read_head(response, *head);
        report(*head);
        inbox->set_status(head->status, framing_of(response));
        return response.content_ready();
      };
  const auto on_end = [inbox, head, client, refusal = clients_->refusal,
                       done = std::move(callbacks.done)](const pplx::task<http_response>& ended) {
    std::optional<Error> error;
    try {
      ended.get();
      error = inbox->end_error();
      if (head->status != 200) head->body = inbox->body();
    } catch (...) {
      error = lost(std::current_exception(), true, *refusal);
    }
    done(*head, std::move(error));
  };
  const pplx::cancellation_token_source cancellation;
  client->request(request, cancellation.get_token()).then(on_head).then(on_end);
  return Cancel([cancellation] { cancellation.cancel(); });
}

}  // namespace holdfast::http
