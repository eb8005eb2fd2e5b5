// Boost 1.74's awaitable.hpp misses it under C++20.
#include <utility>

#include "tests/support/connect_proxy.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <set>
#include <thread>

namespace holdfast::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

tcp::endpoint loopback(int port) {
  return {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(port)};
}

void relay(tcp::socket& from, tcp::socket& to) {
  std::array<char, 16384> buffer;
  error_code error;
  while (!error) {
    const std::size_t size = from.read_some(asio::buffer(buffer), error);
    if (size > 0) asio::write(to, asio::buffer(buffer.data(), size), error);
  }
  error_code ignored;
  to.shutdown(tcp::socket::shutdown_both, ignored);
}

}  // namespace

struct ConnectProxy::Impl {
  Impl(int port, bool refuses) : target_port(port), refuse(refuses) {}

  void accept_all() {
    while (true) {
      auto client = std::make_shared<tcp::socket>(context);
      error_code error;
      acceptor.accept(*client, error);
      std::lock_guard<std::mutex> lock(mutex);
      if (stopping) return;
      if (error) continue;
      sockets.insert(client->native_handle());
      threads.emplace_back([this, client] { serve(*client); });
    }
  }

  void serve(tcp::socket& client) {
    std::string head;
    error_code error;
    asio::read_until(client, asio::dynamic_buffer(head), "\r\n\r\n", error);
    {
      std::lock_guard<std::mutex> lock(mutex);
      heads.push_back(head);
    }
    tcp::socket server(context);
    if (!error && !refuse) server.connect(loopback(target_port), error);
    const std::string answer = error || refuse ? "HTTP/1.1 407 Refused\r\n\r\n"
                                               : "HTTP/1.1 200 Connection established\r\n\r\n";
    asio::write(client, asio::buffer(answer), error);
    if (server.is_open()) {
      std::thread back([&] { relay(server, client); });
      relay(client, server);
      back.join();
    }
    std::lock_guard<std::mutex> lock(mutex);
    sockets.erase(client.native_handle());
    client.close(error);
  }

  const int target_port;
  const bool refuse;
  asio::io_context context;
  tcp::acceptor acceptor{context, loopback(0)};
  std::thread accepting;

  std::mutex mutex;
  std::vector<std::string> heads;
  std::set<int> sockets;
  std::vector<std::thread> threads;
  bool stopping = false;
};

ConnectProxy::ConnectProxy(int target_port, bool refuse)
    : impl_(std::make_unique<Impl>(target_port, refuse)) {
  impl_->accepting = std::thread([this] { impl_->accept_all(); });
}

ConnectProxy::~ConnectProxy() {
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->stopping = true;
    ::shutdown(impl_->acceptor.native_handle(), SHUT_RDWR);
    for (const int socket : impl_->sockets) ::shutdown(socket, SHUT_RDWR);
  }
  impl_->accepting.join();
  for (std::thread& thread : impl_->threads) thread.join();
}

int ConnectProxy::port() const { return impl_->acceptor.local_endpoint().port(); }

std::vector<std::string> ConnectProxy::heads() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->heads;
}

}  // namespace holdfast::test
