// Boost 1.74's awaitable.hpp misses it under C++20.
#include <utility>

#include "tests/support/tls_server.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <set>
#include <thread>

namespace holdfast::test {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using Stream = asio::ssl::stream<tcp::socket>;
using boost::system::error_code;

std::string common_name(X509* certificate) {
  if (certificate == nullptr) return "";
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  return name;
}

class StreamExchange : public TlsServer::Exchange {
 public:
  explicit StreamExchange(Stream& stream) : stream_(stream) {}
  bool write(const std::string& bytes) override {
    error_code error;
    asio::write(stream_, asio::buffer(bytes), error);
    return !error;
  }
  void drop() override {
    error_code ignored;
    stream_.next_layer().shutdown(tcp::socket::shutdown_both, ignored);
  }
  void wait_for_client_to_go() override {
    error_code error;
    char byte;
    while (!error) stream_.read_some(asio::buffer(&byte, 1), error);
  }

 private:
  Stream& stream_;
};

}  // namespace

struct TlsServer::Impl {
  Impl() : acceptor(context, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {}

  void accept_all();
  void serve(int connection);
  void serve_stream(Stream& stream, int connection);

  asio::io_context context;
  tcp::acceptor acceptor;
  std::thread accepting;

  mutable std::mutex mutex;
  Handler handler;
  KeyPair identity;
  std::string client_ca;
  std::vector<Request> requests;
  std::map<int, tcp::socket> accepted;  // not yet taken by their threads
  std::set<int> open_sockets;
  std::vector<std::thread> threads;
  int connections = 0;
  bool stopping = false;
};

void TlsServer::Impl::accept_all() {
  while (true) {
    tcp::socket socket(context);
    error_code error;
    // accept() asks for a descriptor before it waits: without one it would fail at once, for ever.
    acceptor.wait(tcp::acceptor::wait_read, error);
    if (!error) acceptor.accept(socket, error);
    std::lock_guard<std::mutex> lock(mutex);
    if (stopping) return;
    if (error) continue;
    open_sockets.insert(socket.native_handle());
    const int connection = ++connections;
    accepted.emplace(connection, std::move(socket));
    threads.emplace_back([this, connection] { serve(connection); });
  }
}

void TlsServer::Impl::serve(int connection) {
  asio::ssl::context tls(asio::ssl::context::tls_server);
  std::unique_lock<std::mutex> lock(mutex);
  tls.use_certificate_chain(asio::buffer(identity.certificate));
  tls.use_private_key(asio::buffer(identity.key), asio::ssl::context::pem);
  if (!client_ca.empty()) {
    tls.add_certificate_authority(asio::buffer(client_ca));
    tls.set_verify_mode(asio::ssl::verify_peer);
  }
  Stream stream(std::move(accepted.at(connection)), tls);
  accepted.erase(connection);
  lock.unlock();
  const int socket = stream.next_layer().native_handle();
  error_code error;
  stream.handshake(Stream::server, error);
  if (!error) serve_stream(stream, connection);
  lock.lock();
  open_sockets.erase(socket);
  stream.next_layer().close(error);
}

void TlsServer::Impl::serve_stream(Stream& stream, int connection) {
  beast::flat_buffer buffer;
  while (true) {
    beast::http::request<beast::http::string_body> message;
    error_code error;
    beast::http::read(stream, buffer, message, error);
    if (error) return;
    StreamExchange exchange(stream);
    Request& request = exchange.request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    for (const auto& field : message) {
      std::string name(field.name_string());
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      request.headers[name] = std::string(field.value());
    }
    request.body = message.body();
    request.connection = connection;
    SSL* const ssl = stream.native_handle();
    const char* const server_name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    request.server_name = server_name == nullptr ? "" : server_name;
    request.client_name = common_name(SSL_get0_peer_certificate(ssl));
    Handler current;
    {
      std::lock_guard<std::mutex> lock(mutex);
      requests.push_back(request);
      current = handler;
    }
    current(exchange);
  }
}

void TlsServer::Exchange::respond(int status, const std::string& body, const std::string& headers) {
  write("HTTP/1.1 " + std::to_string(status) + " Status\r\n" + headers +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

void TlsServer::Exchange::begin_chunked(int status, const std::string& headers) {
  write("HTTP/1.1 " + std::to_string(status) + " Status\r\n" + headers +
        "Transfer-Encoding: chunked\r\n\r\n");
}

bool TlsServer::Exchange::chunk(const std::string& data) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return write(size + data + "\r\n");
}

void TlsServer::Exchange::end_chunked() { write("0\r\n\r\n"); }

TlsServer::TlsServer(const KeyPair& identity, const std::string& client_ca)
    : impl_(std::make_shared<Impl>()) {
  impl_->identity = identity;
  impl_->client_ca = client_ca;
  impl_->handler = [](Exchange& exchange) { exchange.respond(200, "{}"); };
  impl_->accepting = std::thread([impl = impl_.get()] { impl->accept_all(); });
}

TlsServer::~TlsServer() {
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->stopping = true;
    ::shutdown(impl_->acceptor.native_handle(), SHUT_RDWR);  // wakes accept()
    for (const int socket : impl_->open_sockets) ::shutdown(socket, SHUT_RDWR);
  }
  impl_->accepting.join();
  for (std::thread& thread : impl_->threads) thread.join();
}

int TlsServer::port() const { return impl_->acceptor.local_endpoint().port(); }

std::string TlsServer::url(const std::string& host) const {
  return "https://" + host + ":" + std::to_string(port());
}

void TlsServer::handle(Handler handler) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->handler = std::move(handler);
}

std::vector<TlsServer::Request> TlsServer::requests() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->requests;
}

int TlsServer::connections() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->connections;
}

void TlsServer::cut_connections() {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  const linger reset{1, 0};
  for (const int socket : impl_->open_sockets) {
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    ::shutdown(socket, SHUT_RD);
  }
}

int TlsServer::open_connections() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return static_cast<int>(impl_->open_sockets.size());
}

void TlsServer::use_identity(const KeyPair& identity) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->identity = identity;
}

}  // namespace holdfast::test
