// Boost 1.74's awaitable.hpp misses it under C++20.
#include <utility>

#include "tests/support/front.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "client/http/relay.h"

namespace holdfast::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

}  // namespace

struct Front::Impl {
  explicit Impl(Config the_config)
      : config(std::move(the_config)),
        acceptor(context, {asio::ip::make_address(config.address), 0}) {
    if (!config.identity) return;
    tls.use_certificate_chain(asio::buffer(config.identity->certificate));
    tls.use_private_key(asio::buffer(config.identity->key), asio::ssl::context::pem);
  }

  void accept_all() {
    while (true) {
      const int client = ::accept(acceptor.native_handle(), nullptr, nullptr);
      std::lock_guard<std::mutex> lock(mutex);
      if (stopping) {
        if (client >= 0) ::close(client);
        return;
      }
      if (client < 0) continue;
      sockets.insert(client);
      threads.emplace_back([this, client] { serve(client); });
    }
  }

  template <class Client>
  void carry(asio::io_context& io, Client& client, tcp::socket& lowest) {
    const auto read = [&](std::size_t size) {
      std::string bytes(size, '\0');
      error_code error;
      asio::read(client, asio::buffer(bytes), error);
      return error ? std::string() : bytes;
    };
    const auto write = [&](const std::string& bytes) {
      error_code ignored;
      asio::write(client, asio::buffer(bytes), ignored);
    };
    if (config.greet && !config.greet(read, write)) return;
    tcp::socket server(io);
    error_code error;
    server.connect(
        {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(config.target_port)}, error);
    if (error) return;
    http::Relay<Client, tcp::socket> relay(client, server, [&] {
      error_code ignored;
      lowest.shutdown(tcp::socket::shutdown_both, ignored);
      server.shutdown(tcp::socket::shutdown_both, ignored);
    });
    relay.begin(nullptr);
    io.run();
  }

  void serve(int handle) {
    {
      asio::io_context io;
      const bool is_v6 = config.address.find(':') != std::string::npos;
      tcp::socket client(io, is_v6 ? tcp::v6() : tcp::v4(), handle);
      if (config.identity) {
        asio::ssl::stream<tcp::socket&> stream(client, tls);
        error_code error;
        stream.handshake(asio::ssl::stream_base::server, error);
        if (!error) carry(io, stream, client);
      } else {
        carry(io, client, client);
      }
      std::lock_guard<std::mutex> lock(mutex);
      sockets.erase(handle);
    }
  }

  const Config config;
  asio::io_context context;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  tcp::acceptor acceptor;
  std::thread accepting;

  std::mutex mutex;
  std::set<int> sockets;
  std::vector<std::thread> threads;
  bool stopping = false;
};

Front::Front(Config config) : impl_(std::make_unique<Impl>(std::move(config))) {
  impl_->accepting = std::thread([this] { impl_->accept_all(); });
}

Front::~Front() {
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->stopping = true;
    ::shutdown(impl_->acceptor.native_handle(), SHUT_RDWR);
    for (const int socket : impl_->sockets) ::shutdown(socket, SHUT_RDWR);
  }
  impl_->accepting.join();
  for (std::thread& thread : impl_->threads) thread.join();
}

int Front::port() const { return impl_->acceptor.local_endpoint().port(); }

bool Front::can_listen(const std::string& address) {
  asio::io_context io;
  error_code error;
  const tcp::endpoint at(asio::ip::make_address(address), 0);
  tcp::acceptor acceptor(io);
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.bind(at, error);
  return !error;
}

}  // namespace holdfast::test
