#include "tests/support/connect_proxy.h"
#include "tests/unit/http/transport_fixture.h"

namespace holdfast::http {
namespace {

using test::ConnectProxy;

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
  for (const char* const url : {"socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://"}) {
    auto wrong = config();
    wrong.proxy_url = url;
    loop_.run(
        [&] { EXPECT_FALSE(CpprestTransport::create(loop_.loop(), wrong, Log()).ok()) << url; });
  }
}

}  // namespace
}  // namespace holdfast::http
