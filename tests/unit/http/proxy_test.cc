// Boost 1.74's awaitable.hpp misses it under C++20.
#include <utility>

#include "client/http/tunnel.h"

#include <poll.h>
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>

#include "tests/support/connect_proxy.h"
#include "tests/support/descriptor_limit.h"
#include "tests/support/front.h"
#include "tests/unit/http/transport_fixture.h"

namespace holdfast::http {
namespace {

using test::ConnectProxy;
using test::DescriptorLimit;
using test::Front;

class ProxyTest : public TransportTest {
 protected:
  void make_through(const ConnectProxy& proxy, const std::string& user_info = "") {
    auto through = config();
    through.proxy_url = "http://" + user_info + "127.0.0.1:" + std::to_string(proxy.port());
    make(through);
  }
};

TEST_F(ProxyTest, RequestsAndStreamsGoThroughATunnelAndTheServerIsStillVerified) {
  ConnectProxy proxy(server_.port());
  make_through(proxy);
  const auto response = send(get_request("/through"));
  ASSERT_TRUE(response.ok()) << response.error().message;
  StreamLog log;
  StreamRequest watch;
  watch.target = "/watch";
  open(std::move(watch), log);
  ASSERT_TRUE(eventually([&] { return log.ended(); }));
  EXPECT_EQ(log.opened_status(), 200);
  const std::string address = "127.0.0.1:" + std::to_string(server_.port());
  ASSERT_FALSE(proxy.heads().empty());
  EXPECT_EQ(proxy.heads().at(0).substr(0, 9 + address.size()), "CONNECT " + address + " ");
}

TEST_F(ProxyTest, TheProxyCannotPutAnotherServerInPlace) {
  const CertificateAuthority other("other");
  TlsServer impostor(other.issue("server", {"IP:127.0.0.1"}));
  ConnectProxy proxy(impostor.port());
  make_through(proxy);
  const auto response = send(get_request("/"));
  ASSERT_FALSE(response.ok());
  EXPECT_FALSE(response.error().maybe_applied);
  EXPECT_TRUE(impostor.requests().empty());
}

TEST_F(ProxyTest, ItsUserAndPasswordAreDecodedAndSentToItAlone) {
  ConnectProxy proxy(server_.port());
  make_through(proxy, "me:p%40ss@");
  ASSERT_TRUE(send(get_request("/")).ok());
  EXPECT_NE(proxy.heads().at(0).find("Proxy-Authorization: Basic bWU6cEBzcw=="), std::string::npos);
  EXPECT_EQ(server_.requests().at(0).headers.count("proxy-authorization"), 0u);
}

TEST_F(ProxyTest, AProxyThatRefusesCertainlyAppliedNothing) {
  ConnectProxy proxy(server_.port(), true);
  make_through(proxy);
  const auto response = send(get_request("/"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
  EXPECT_FALSE(response.error().maybe_applied);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(ProxyTest, OneThatCannotBeUsedIsRefusedAtOnce) {
  for (const char* const url : {"socks4://127.0.0.1:1", "ftp://127.0.0.1:1", "http://"}) {
    auto wrong = config();
    wrong.proxy_url = url;
    loop_.run(
        [&] { EXPECT_FALSE(CpprestTransport::create(loop_.loop(), wrong, Log()).ok()) << url; });
  }
}

// ---- What cpprestsdk cannot do by itself.

class TunnelTest : public ProxyTest {
 protected:
  static constexpr std::size_t kLarge = 800'000;
  // An https:// proxy: TLS with this identity before a plain one.
  static Front::Config tls_before(const ConnectProxy& plain, test::KeyPair identity) {
    Front::Config tls;
    tls.target_port = plain.port();
    tls.identity = std::move(identity);
    return tls;
  }
  void make_by(const std::string& proxy_url) {
    auto through = config();
    through.proxy_url = proxy_url;
    make(through);
  }
  // Requests and a stream, which ends when the server ends it.
  void expect_all_works() {
    for (int i = 0; i < 3; ++i) {
      const auto response = send(get_request("/through"));
      ASSERT_TRUE(response.ok()) << response.error().message;
      EXPECT_EQ(response->status, 200);
    }
    Request large = get_request("/large");
    large.method = "POST";
    large.body = std::string(kLarge, 'x');
    ASSERT_TRUE(send(std::move(large)).ok());
    EXPECT_EQ(server_.requests().back().body.size(), kLarge);
    StreamLog log;
    StreamRequest watch;
    watch.target = "/watch";
    open(std::move(watch), log);
    ASSERT_TRUE(eventually([&] { return log.ended(); }));
    EXPECT_EQ(log.opened_status(), 200);
  }
  // Speaks RFC 1928; with a user, RFC 1929, too. Records whom it is asked for.
  Front::Config socks(const std::string& user = "", const std::string& password = "") {
    Front::Config config;
    config.target_port = server_.port();
    config.greet = [this, user, password](const Front::Read& read, const Front::Write& write) {
      const std::string hello = read(2);
      if (hello.size() != 2 || hello[0] != 5) return false;
      const std::string methods = read(static_cast<unsigned char>(hello[1]));
      const char method = user.empty() ? '\0' : '\2';
      if (methods.find(method) == std::string::npos) {
        write("\x05\xff");
        return false;
      }
      write(std::string("\x05") + method);
      if (method != 0) {
        const std::string head = read(2);
        const std::string name = read(static_cast<unsigned char>(head[1]));
        const std::string word = read(static_cast<unsigned char>(read(1)[0]));
        const bool is_right = name == user && word == password;
        write(std::string("\x01") + (is_right ? '\0' : '\1'));
        if (!is_right) return false;
      }
      const std::string request = read(4);
      if (request.substr(0, 3) != std::string("\x05\x01\x00", 3)) return false;
      const std::size_t length = request[3] == 1   ? 4
                                 : request[3] == 4 ? 16
                                                   : static_cast<unsigned char>(read(1)[0]);
      const std::string address = read(length);
      const std::string port = read(2);
      {
        std::lock_guard<std::mutex> lock(mutex_);
        asked_.push_back(request[3] == 3 ? address : "an address");
      }
      if (refuses_) {
        write(std::string("\x05\x05\x00\x01", 4) + std::string(6, '\0'));
        return false;
      }
      // What it is bound to is a name.
      write(std::string("\x05\x00\x00\x03\x04test", 9) + std::string(2, '\0'));
      return true;
    };
    return config;
  }
  std::vector<std::string> asked() {
    std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;
  bool refuses_ = false;
};

TEST_F(TunnelTest, AServerWithAnIpv6AddressIsReachedAndVerified) {
  if (!Front::can_listen("::1")) GTEST_SKIP() << "this machine has no IPv6";
  server_.use_identity(ca_.issue("server", {"IP:::1"}));
  Front::Config front;
  front.address = "::1";
  front.target_port = server_.port();
  const Front v6(front);
  auto to_v6 = config();
  to_v6.base_url = "https://[::1]:" + std::to_string(v6.port());
  make(to_v6);
  expect_all_works();
  EXPECT_EQ(server_.requests().at(0).server_name, "") << "an address is no server name";
  server_.use_identity(ca_.issue("server", {"IP:::2", "DNS:localhost"}));
  server_.cut_connections();
  make(to_v6);
  const auto refused = send(get_request("/"));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("certificate"), std::string::npos)
      << refused.error().message;
}

TEST_F(TunnelTest, RequestsGoThroughASocksProxyWhichLooksTheNameUp) {
  const Front proxy(socks());
  auto by_name = config();
  by_name.base_url = "https://localhost:" + std::to_string(server_.port());
  by_name.proxy_url = "socks5://127.0.0.1:" + std::to_string(proxy.port());
  make(by_name);
  expect_all_works();
  ASSERT_FALSE(asked().empty());
  EXPECT_EQ(asked()[0], "localhost");
  make_by("socks5h://127.0.0.1:" + std::to_string(proxy.port()));
  expect_all_works();
  EXPECT_EQ(asked().back(), "an address");
}

TEST_F(TunnelTest, ASocksProxyGetsItsUserAndPassword) {
  const Front proxy(socks("me", "p@ss"));
  const std::string port = std::to_string(proxy.port());
  make_by("socks5://me:p%40ss@127.0.0.1:" + port);
  expect_all_works();
  make_by("socks5://me:wrong@127.0.0.1:" + port);
  const auto refused = send(get_request("/"));
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(refused.error().maybe_applied);
  make_by("socks5://127.0.0.1:" + port);
  EXPECT_FALSE(send(get_request("/")).ok());
}

TEST_F(TunnelTest, WhatASocksProxyRefusesWasNotApplied) {
  refuses_ = true;
  const Front proxy(socks());
  make_by("socks5://127.0.0.1:" + std::to_string(proxy.port()));
  const auto response = send(get_request("/"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
  EXPECT_FALSE(response.error().maybe_applied);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(TunnelTest, TheProxyCannotPutAnotherServerInPlaceEither) {
  const CertificateAuthority other("other");
  TlsServer impostor(other.issue("server", {"IP:127.0.0.1"}));
  Front::Config config = socks();
  config.target_port = impostor.port();
  const Front proxy(config);
  make_by("socks5://127.0.0.1:" + std::to_string(proxy.port()));
  EXPECT_FALSE(send(get_request("/")).ok());
  EXPECT_TRUE(impostor.requests().empty());
}

TEST_F(TunnelTest, RequestsGoThroughAProxyThatSpeaksTls) {
  ConnectProxy plain(server_.port());
  const Front proxy(tls_before(plain, ca_.issue("proxy", {"DNS:localhost"})));
  make_by("https://me:p%40ss@localhost:" + std::to_string(proxy.port()));
  expect_all_works();
  const std::string head = plain.heads().at(0);
  EXPECT_EQ(head.rfind("CONNECT 127.0.0.1:" + std::to_string(server_.port()) + " ", 0), 0u) << head;
  EXPECT_NE(head.find("Proxy-Authorization: Basic bWU6cEBzcw=="), std::string::npos);
}

TEST_F(TunnelTest, ARenewedAuthorityIsTrustedForTheProxyToo) {
  const CertificateAuthority next("next");
  ConnectProxy plain(server_.port());
  const Front proxy(tls_before(plain, next.issue("proxy", {"DNS:localhost"})));
  make_by("https://localhost:" + std::to_string(proxy.port()));
  EXPECT_FALSE(send(get_request("/")).ok());
  TlsConfig both = config().tls;
  both.ca += next.certificate();
  loop_.run([&] { EXPECT_TRUE(transport_->set_tls(both).ok()); });
  const auto response = send(get_request("/"));
  EXPECT_TRUE(response.ok()) << response.error().message;
  TlsConfig none = config().tls;
  loop_.run([&] { EXPECT_TRUE(transport_->set_tls(none).ok()); });
  EXPECT_FALSE(send(get_request("/")).ok()) << "an authority that is withdrawn";
}

// Basic authentication has no limit of its own, and some proxies take tokens as passwords.
TEST_F(TunnelTest, OnlyASocksProxyLimitsTheLengthOfAPassword) {
  ConnectProxy plain(server_.port());
  const Front proxy(tls_before(plain, ca_.issue("proxy", {"DNS:localhost"})));
  const std::string user = "me:" + std::string(1000, 'p') + "@localhost:";
  make_by("https://" + user + std::to_string(proxy.port()));
  ASSERT_TRUE(send(get_request("/")).ok());
  EXPECT_GT(plain.heads().at(0).size(), 1300u) << "with the whole password";
  auto socks = config();
  socks.proxy_url = "socks5://" + user + std::to_string(proxy.port());
  loop_.run([&] {
    const auto refused = CpprestTransport::create(loop_.loop(), socks, Log());
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("255"), std::string::npos);
  });
}

TEST_F(TunnelTest, AProxyWithAWrongCertificateGetsNothing) {
  ConnectProxy plain(server_.port());
  const Front proxy(tls_before(plain, ca_.issue("proxy", {"DNS:elsewhere"})));
  make_by("https://me:p%40ss@localhost:" + std::to_string(proxy.port()));
  EXPECT_FALSE(send(get_request("/")).ok());
  EXPECT_TRUE(plain.heads().empty());
}

// Any program of this machine can connect to a port on loopback.
TEST(Tunnel, LeadsNobodyAnywhereWithoutItsPassword) {
  const CertificateAuthority ca("test");
  TlsServer server(ca.issue("server", {"IP:127.0.0.1"}));
  const auto tunnel = Tunnel::open({"127.0.0.1", server.port(), std::nullopt, ""});
  ASSERT_TRUE(tunnel.ok());
  boost::asio::io_context io;
  using boost::asio::ip::tcp;
  tcp::socket client(io);
  client.connect(
      {boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>((*tunnel)->port())});
  const std::string request = "CONNECT 127.0.0.1:" + std::to_string(server.port()) +
                              " HTTP/1.1\r\nProxy-Authorization: Basic aG9sZGZhc3Q6\r\n\r\n";
  boost::asio::write(client, boost::asio::buffer(request));
  std::string answer;
  boost::system::error_code error;
  boost::asio::read(client, boost::asio::dynamic_buffer(answer), error);
  EXPECT_EQ(answer.rfind("HTTP/1.1 407 ", 0), 0u) << answer;
  EXPECT_EQ(server.connections(), 0);
}

// ---- Descriptors.

std::uint64_t open_descriptors() {
  std::uint64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

std::chrono::microseconds cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST_F(TunnelTest, WithoutDescriptorsItIsAnErrorAndNoCrash) {
  for (rlim_t more = 0; more < Tunnel::kDescriptors; ++more) {
    const DescriptorLimit limit(more);
    const auto tunnel = Tunnel::open({"127.0.0.1", server_.port(), std::nullopt, ""});
    ASSERT_FALSE(tunnel.ok()) << more;
    EXPECT_EQ(tunnel.error().code, ErrorCode::kTransient) << tunnel.error().message;
  }
}

TEST_F(TunnelTest, ItTakesAsManyDescriptorsAsItsHeaderSays) {
  const std::uint64_t before = open_descriptors();
  const auto tunnel = Tunnel::open({"127.0.0.1", server_.port(), std::nullopt, ""});
  ASSERT_TRUE(tunnel.ok());
  EXPECT_EQ(open_descriptors(), before + Tunnel::kDescriptors);
}

// Descriptors come back. Until then the tunnel must leave the processor to others.
TEST_F(TunnelTest, AConnectionThatItCannotAcceptCostsNoProcessorTimeAndIsAcceptedLater) {
  using boost::asio::ip::tcp;
  const auto tunnel = Tunnel::open({"127.0.0.1", server_.port(), std::nullopt, ""});
  ASSERT_TRUE(tunnel.ok());
  boost::asio::io_context io;
  tcp::socket client(io, tcp::v4());
  pollfd answered{client.native_handle(), POLLIN, 0};
  {
    const DescriptorLimit limit(0);
    client.connect(
        {boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>((*tunnel)->port())});
    boost::asio::write(client, boost::asio::buffer(std::string("GET / HTTP/1.1\r\n\r\n")));
    const auto begun = cpu_time();
    EXPECT_EQ(::poll(&answered, 1, 500), 0);
    EXPECT_LT((cpu_time() - begun).count(), 50'000);
  }
  std::string answer;
  boost::system::error_code error;
  boost::asio::read(client, boost::asio::dynamic_buffer(answer), error);
  EXPECT_EQ(answer.rfind("HTTP/1.1 407 ", 0), 0u) << answer;
}

}  // namespace
}  // namespace holdfast::http
