#include "client/http/proxy_protocol.h"

#include <gtest/gtest.h>

namespace holdfast::http {
namespace {

using namespace std::string_literals;

Proxy with_login() {
  Proxy proxy;
  proxy.user = "me";
  proxy.password = "secret";
  return proxy;
}

TEST(ProxyProtocol, AConnectNamesTheServerAndCarriesTheLoginIfThereIsOne) {
  EXPECT_EQ(connect_request(Proxy(), "::1", 6443),
            "CONNECT [::1]:6443 HTTP/1.1\r\nHost: [::1]:6443\r\n\r\n");
  EXPECT_EQ(connect_request(with_login(), "api", 443),
            "CONNECT api:443 HTTP/1.1\r\nHost: api:443\r\n"
            "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n");
}

TEST(ProxyProtocol, SocksOffersALoginOnlyIfThereIsOne) {
  EXPECT_EQ(socks_greeting(Proxy()), "\x05\x01\x00"s);
  EXPECT_EQ(socks_greeting(with_login()), "\x05\x02\x00\x02"s);
  EXPECT_EQ(socks_login(with_login()), "\x01\x02me\x06secret"s);
}

TEST(ProxyProtocol, SocksSendsAddressesAsNumbersAndLetsTheProxyLookNamesUp) {
  EXPECT_EQ(socks_request("10.0.0.1", 443), "\x05\x01\x00\x01\x0a\x00\x00\x01\x01\xbb"s);
  EXPECT_EQ(socks_request("::1", 6443),
            "\x05\x01\x00\x04"s + std::string(15, '\0') + "\x01\x19\x2b"s);
  EXPECT_EQ(socks_request("api", 443), "\x05\x01\x00\x03\x03"s + "api" + "\x01\xbb"s);
}

TEST(ProxyProtocol, TheRestOfASocksReplyDependsOnTheKindOfItsAddress) {
  EXPECT_EQ(socks_reply_rest("\x05\x00\x00\x01\x7f"s), 5u);
  EXPECT_EQ(socks_reply_rest("\x05\x00\x00\x04\x00"s), 17u);
  EXPECT_EQ(socks_reply_rest("\x05\x00\x00\x03\x09"s), 11u);
}

}  // namespace
}  // namespace holdfast::http
