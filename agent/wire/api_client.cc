#include "agent/wire/api_client.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <openssl/conf.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "client/http/retry_after.h"
#include "client/http/tls.h"
#include "client/http/transport.h"
#include "core/file_reader.h"

namespace holdfast::agent {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMaxTokenBytes = 64 << 10;
constexpr std::size_t kMaxCaBytes = 1 << 20;
// etcd stores no larger object.
constexpr std::size_t kMaxBodyBytes = 2 << 20;
constexpr std::size_t kMaxHeaderBytes = 32 << 10;
// Of a stream. A Lease has one annotation of 16 KiB, which JSON may lengthen.
constexpr std::size_t kMaxStreamLineBytes = 256 << 10;
constexpr std::size_t kMaxRefusalBytes = 64 << 10;
constexpr std::size_t kPieceBytes = 16 << 10;
constexpr int kHttpVersion = 11;
constexpr const char* kUserAgent = "holdfast-agent/" HOLDFAST_VERSION;

std::string token_file(const std::string& folder) { return folder + "/token"; }
std::string ca_file(const std::string& folder) { return folder + "/ca.crt"; }

std::string host_header(const ApiServer& server) {
  const bool v6 = server.host.find(':') != std::string::npos;
  return (v6 ? "[" + server.host + "]" : server.host) + ":" + std::to_string(server.port);
}

}  // namespace

// Lives until its last handler has run. An aborted connection calls nobody.
class ApiClient::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, const ApiServer& server)
      : io_(io), server_(server), context_(asio::ssl::context::tls_client) {}

  // Empty, or why not. Before anything else.
  std::string prepare(const std::string& ca) {
    const std::string path = ca_file(server_.credentials);
    http::TlsConfig tls;
    tls.ca = ca;
    if (tls.ca.empty()) return path + " is empty";
    const Result<> applied = http::apply_tls(context_.native_handle(), tls, server_.host);
    if (!applied.ok()) return path + ": " + applied.error().message;
    context_.set_verify_mode(asio::ssl::verify_peer);
    stream_.emplace(io_, context_);  // takes its settings from the context now
    return "";
  }

  // With a handler for lines the answer is a stream.
  void send(beast_http::request<beast_http::string_body> request, LineHandler line,
            Handler handler) {
    request_ = std::move(request);
    line_ = std::move(line);
    request_.set(beast_http::field::host, host_header(server_));
    request_.prepare_payload();
    handler_ = std::move(handler);
    if (open_) {
      write();
    } else {
      connect();
    }
  }

  void abort() {
    handler_ = nullptr;
    error_code ignored;
    if (stream_) stream_->next_layer().close(ignored);
  }

  // Between requests the server has nothing to say but that it closes.
  bool usable() {
    if (!open_ || handler_) return false;
    char byte = 0;
    const ssize_t count =
        ::recv(stream_->next_layer().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

 private:
  using Stream = asio::ssl::stream<tcp::socket>;

  void connect() {
    error_code error;
    const tcp::endpoint endpoint(asio::ip::make_address(server_.host, error),
                                 static_cast<unsigned short>(server_.port));
    tcp::socket& socket = stream_->next_layer();
    if (!error) socket.open(endpoint.protocol(), error);
    if (error) return fail("cannot connect", error);
    // The child must not inherit it.
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.async_connect(endpoint, [self = shared_from_this()](error_code failed) {
      if (failed) return self->fail("cannot connect to " + host_header(self->server_), failed);
      self->handshake();
    });
  }

  void handshake() {
    if (!handler_) return;
    stream_->async_handshake(Stream::client, [self = shared_from_this()](error_code failed) {
      if (failed) return self->fail_handshake(failed);
      self->open_ = true;
      self->write();
    });
  }

  void write() {
    if (!handler_) return;
    beast_http::async_write(*stream_, request_,
                            [self = shared_from_this()](error_code failed, std::size_t) {
                              if (failed) return self->fail("the request was not sent", failed);
                              self->line_ ? self->read_head() : self->read();
                            });
  }

  void read() {
    if (!handler_) return;
    parser_.emplace();
    parser_->body_limit(kMaxBodyBytes);
    parser_->header_limit(kMaxHeaderBytes);
    beast_http::async_read(*stream_, buffer_, *parser_,
                           [self = shared_from_this()](error_code failed, std::size_t) {
                             if (failed) return self->fail("no whole answer came", failed);
                             self->done();
                           });
  }

  void done() {
    if (!handler_) return;
    ApiReply reply;
    reply.status = static_cast<int>(parser_->get().result_int());
    reply.retry_after =
        http::parse_retry_after(std::string(parser_->get()[beast_http::field::retry_after]));
    reply.body = std::move(parser_->get().body());
    open_ = parser_->keep_alive();
    parser_.reset();
    std::exchange(handler_, nullptr)(std::move(reply));
  }

  // -- a stream --

  void read_head() {
    if (!handler_) return;
    rest_.clear();
    pieces_.emplace();
    pieces_->body_limit(boost::none);
    pieces_->header_limit(kMaxHeaderBytes);
    beast_http::async_read_header(*stream_, buffer_, *pieces_,
                                  [self = shared_from_this()](error_code failed, std::size_t) {
                                    if (failed) return self->fail("no answer came", failed);
                                    self->read_piece();
                                  });
  }

  void read_piece() {
    if (!handler_) return;
    if (pieces_->is_done()) return end_stream();
    pieces_->get().body().data = piece_.data();
    pieces_->get().body().size = piece_.size();
    beast_http::async_read_some(*stream_, buffer_, *pieces_,
                                [self = shared_from_this()](error_code failed, std::size_t) {
                                  if (!self->handler_) return;
                                  if (failed && failed != beast_http::error::need_buffer) {
                                    return self->fail("the stream broke off", failed);
                                  }
                                  const std::size_t left = self->pieces_->get().body().size;
                                  self->take({self->piece_.data(), self->piece_.size() - left});
                                  self->read_piece();
                                });
  }

  void take(std::string_view text) {
    const bool lines = pieces_->get().result() == beast_http::status::ok;
    if (!lines) {
      rest_.append(text.substr(0, kMaxRefusalBytes - rest_.size()));
      return;
    }
    // The handler may abort this.
    const LineHandler line = line_;
    while (handler_ && !text.empty()) {
      const std::size_t end = text.find('\n');
      rest_.append(text.substr(0, end));
      if (rest_.size() > kMaxStreamLineBytes) return answer("a line of the stream is too long");
      if (end == std::string_view::npos) return;
      text.remove_prefix(end + 1);
      line(std::exchange(rest_, ""));
    }
  }

  void end_stream() {
    ApiReply reply;
    reply.status = static_cast<int>(pieces_->get().result_int());
    reply.retry_after =
        http::parse_retry_after(std::string(pieces_->get()[beast_http::field::retry_after]));
    if (reply.status != 200) reply.body = std::move(rest_);
    open_ = pieces_->keep_alive();
    std::exchange(handler_, nullptr)(std::move(reply));
  }

  // -- failures --

  void fail_handshake(error_code error) {
    const long verdict = SSL_get_verify_result(stream_->native_handle());
    if (verdict == X509_V_OK) return fail("no TLS connection", error);
    answer("the certificate of the API server at " + host_header(server_) +
           " is refused: " + X509_verify_cert_error_string(verdict));
  }
  void fail(const std::string& what, error_code error) { answer(what + ": " + error.message()); }
  void answer(std::string why) {
    open_ = false;
    error_code ignored;
    stream_->next_layer().close(ignored);
    if (!handler_) return;
    std::exchange(handler_, nullptr)(ApiReply{.status = 0, .body = "", .why = std::move(why)});
  }

  asio::io_context& io_;
  const ApiServer server_;
  asio::ssl::context context_;
  std::optional<Stream> stream_;
  bool open_ = false;  // connected, and the last answer was complete
  beast_http::request<beast_http::string_body> request_;
  std::optional<beast_http::response_parser<beast_http::string_body>> parser_;
  boost::beast::flat_buffer buffer_;
  LineHandler line_;  // none: the answer is no stream
  std::optional<beast_http::response_parser<beast_http::buffer_body>> pieces_;
  std::array<char, kPieceBytes> piece_;
  std::string rest_;  // of the last line, or the body of a refusal
  Handler handler_;   // none: no request in progress, or it was aborted
};

struct ApiClient::Call {
  std::uint64_t number = 0;
  beast_http::request<beast_http::string_body> request;
  LineHandler line;
  Handler handler;
};

struct ApiClient::Credentials {
  std::string token;
  std::string ca;
  std::string why;  // there are none
};

ApiClient::ApiClient(asio::io_context& io, ApiServer server)
    : io_(io), server_(std::move(server)), files_(io) {
  // Ignore the OpenSSL configuration of the worker's image and environment. It could forbid the API
  // server's TLS settings, or its disk could hang.
  OPENSSL_no_config();
}

ApiClient::~ApiClient() { abort(); }

void ApiClient::send(const std::string& method, const std::string& path, std::string body,
                     Handler handler) {
  begin(method, path, std::move(body),
        {.number = 0, .request = {}, .line = nullptr, .handler = std::move(handler)});
}

void ApiClient::stream(const std::string& path, LineHandler line, Handler ended) {
  begin("GET", path, "",
        {.number = 0, .request = {}, .line = std::move(line), .handler = std::move(ended)});
}

void ApiClient::begin(const std::string& method, const std::string& path, std::string body,
                      Call call) {
  call.number = ++calls_;
  if (files_.busy()) {
    asio::post(io_, [this, call = std::move(call), folder = server_.credentials] {
      if (call.number != calls_) return;
      call.handler(ApiReply{.status = 0, .body = "", .why = folder + " cannot be read: it hangs"});
    });
    return;
  }
  call.request = {beast_http::string_to_verb(method), path, kHttpVersion};
  call.request.set(beast_http::field::user_agent, kUserAgent);
  // The answer has no managedFields if the server supports that.
  call.request.set(beast_http::field::accept, "application/json;drop=metadata.managedFields");
  if (!body.empty()) call.request.set(beast_http::field::content_type, "application/json");
  call.request.body() = std::move(body);
  files_.run([this, folder = server_.credentials, call = std::move(call)]() -> FileThread::Then {
    return [this, call, credentials = read_credentials(folder)] { go_on(call, credentials); };
  });
}

// On its own thread.
ApiClient::Credentials ApiClient::read_credentials(const std::string& folder) {
  Credentials credentials;
  Result<std::string> token = system_files().read(token_file(folder), kMaxTokenBytes);
  Result<std::string> ca = system_files().read(ca_file(folder), kMaxCaBytes);
  if (!token.ok() || !ca.ok()) {
    credentials.why = (token.ok() ? ca : token).error().message;
    return credentials;
  }
  // Without the trailing line break. A token that a header cannot carry counts as missing.
  token->erase(token->find_last_not_of(" \r\n") + 1);
  if (token->empty() || token->find_first_of("\r\n \t") != std::string::npos) {
    credentials.why = token_file(folder) + " is not a token";
  }
  credentials.token = std::move(token).value();
  credentials.ca = std::move(ca).value();
  return credentials;
}

void ApiClient::go_on(Call call, const Credentials& credentials) {
  if (call.number != calls_) return;
  std::string why = credentials.why;
  if (why.empty() && (!connection_ || !connection_->usable())) {
    if (connection_) connection_->abort();
    connection_ = std::make_shared<Connection>(io_, server_);
    why = connection_->prepare(credentials.ca);
    if (!why.empty()) connection_.reset();
  }
  if (!why.empty()) return call.handler(ApiReply{.status = 0, .body = "", .why = std::move(why)});
  call.request.set(beast_http::field::authorization, "Bearer " + credentials.token);
  connection_->send(std::move(call.request), std::move(call.line), std::move(call.handler));
}

void ApiClient::abort() {
  ++calls_;
  if (connection_) connection_->abort();
  connection_.reset();
}

}  // namespace holdfast::agent
