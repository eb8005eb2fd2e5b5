#include "client/http/endpoint.h"

#include <gtest/gtest.h>

#include <map>

namespace holdfast::http {
namespace {

std::string parsed(const std::string& url) {
  const Result<Endpoint> endpoint = parse_endpoint(url);
  return endpoint.ok() ? endpoint->url() : "refused";
}

TEST(ParseEndpoint, ReadsSchemeHostPortAndPath) {
  EXPECT_EQ(parsed("https://10.0.0.1:6443"), "https://10.0.0.1:6443");
  EXPECT_EQ(parsed("https://api.example.com"), "https://api.example.com:443");
  EXPECT_EQ(parsed("http://localhost:8001/"), "http://localhost:8001");
  EXPECT_EQ(parsed("HTTPS://host/k8s/clusters/c-1/"), "https://host:443/k8s/clusters/c-1");
  EXPECT_EQ(parsed("10.0.0.1:6443"), "https://10.0.0.1:6443");
}

TEST(ParseEndpoint, RefusesWhatCannotBeReached) {
  for (const char* const url : {"",
                                "https://",
                                "https://:443",
                                "https://.host",
                                "ftp://host",
                                "https://host:0",
                                "https://host:65536",
                                "https://host:x",
                                "https://host:",
                                "https://ho st",
                                "https://host\r\nX: y",
                                "https://host/?a=b",
                                "https://host/#f",
                                "https://::1",
                                "https://[::1",
                                "https://[]",
                                "https://[10.0.0.1]",
                                "https://[::1]x",
                                "https://[::1]:0",
                                "https://[fe80::1%25eth0]:6443",
                                "https://[host]:1"}) {
    EXPECT_EQ(parsed(url), "refused") << url;
  }
}

TEST(ParseEndpoint, TakesIpv6AddressesInBrackets) {
  EXPECT_EQ(parsed("https://[::1]:6443"), "https://[::1]:6443");
  EXPECT_EQ(parsed("https://[FD00::1]"), "https://[fd00::1]:443");
  EXPECT_EQ(parsed("http://[::1]/k8s/"), "http://[::1]:80/k8s");
  EXPECT_EQ(parse_endpoint("https://[fd00::1]:6443")->host, "fd00::1");
}

std::string proxy_at(const std::string& url) {
  const Result<Proxy> proxy = parse_proxy(url);
  return proxy.ok() ? proxy->url() + " " + proxy->user + " " + proxy->password : "refused";
}

TEST(ParseProxy, ReadsEachKindWithItsDefaultPort) {
  EXPECT_EQ(proxy_at("http://proxy:3128"), "http://proxy:3128  ");
  EXPECT_EQ(proxy_at("proxy:3128"), "http://proxy:3128  ");
  EXPECT_EQ(proxy_at("https://proxy"), "https://proxy:443  ");
  EXPECT_EQ(proxy_at("socks5://proxy"), "socks5://proxy:1080  ");
  EXPECT_EQ(proxy_at("SOCKS5H://proxy:99/"), "socks5://proxy:99  ");
  EXPECT_EQ(proxy_at("socks5://[::1]"), "socks5://[::1]:1080  ");
  EXPECT_EQ(proxy_at("socks5://[::1]:80"), "socks5://[::1]:80  ");
  EXPECT_EQ(proxy_at("socks5://me:p%40s%3as@proxy"), "socks5://proxy:1080 me p@s:s");
  EXPECT_EQ(proxy_at("https://me@proxy"), "https://proxy:443 me ");
}

TEST(ParseProxy, RefusesOthersAndNeverShowsAPassword) {
  for (const char* const url : {"", "socks4://proxy", "ftp://me:secret@proxy", "socks5://",
                                "socks5://me:secret@", "http://me:secret@proxy:x"}) {
    const Result<Proxy> proxy = parse_proxy(url);
    ASSERT_FALSE(proxy.ok()) << url;
    EXPECT_EQ(proxy.error().message.find("secret"), std::string::npos) << url;
  }
}

TEST(ParseEndpoint, AMessageNeverShowsAPassword) {
  for (const char* const url : {"http://me:secret@", "http://me:secret@[::1]:x", "me:secret@x:y",
                                "http://me:secret@h/?q", "ftp://me:secret@h"}) {
    const auto refused = parse_endpoint(url);
    ASSERT_FALSE(refused.ok()) << url;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos) << url;
  }
  EXPECT_EQ(parse_endpoint("http://me:secret@proxy:3128")->user_info, "me:secret");
  EXPECT_EQ(parse_endpoint("http://me:secret@proxy:3128")->url(), "http://proxy:3128");
}

TEST(IsIpLiteral, KnowsAddressesFromNames) {
  for (const char* const address : {"10.0.0.1", "::1", "fd00::1"})
    EXPECT_TRUE(is_ip_literal(address));
  for (const char* const name : {"", "host", "1.2.3", "10.0.0.1.", "a.b.c.d", "[::1]"}) {
    EXPECT_FALSE(is_ip_literal(name)) << name;
  }
}

class ProxyOf : public testing::Test {
 protected:
  std::string proxy(const std::string& url) const {
    return proxy_from_environment(*parse_endpoint(url), [this](const std::string& name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::string() : found->second;
    });
  }
  // Whether NO_PROXY keeps this away from the proxy.
  bool excepted(const std::string& no_proxy, const std::string& url) {
    environment_ = {{"HTTPS_PROXY", "http://p:1"}, {"NO_PROXY", no_proxy}};
    return proxy(url).empty();
  }
  std::map<std::string, std::string> environment_;
};

TEST_F(ProxyOf, ComesFromTheVariableOfTheSchemeInEitherCase) {
  EXPECT_EQ(proxy("https://host"), "");
  environment_ = {{"HTTPS_PROXY", "http://a:1"}, {"HTTP_PROXY", "http://b:2"}};
  EXPECT_EQ(proxy("https://host"), "http://a:1");
  EXPECT_EQ(proxy("http://host"), "http://b:2");
  environment_ = {{"https_proxy", "http://c:3"}};
  EXPECT_EQ(proxy("https://host"), "http://c:3");
  EXPECT_EQ(proxy("http://host"), "");
}

TEST_F(ProxyOf, NeverServesThisMachine) {
  environment_ = {{"HTTPS_PROXY", "http://a:1"}};
  EXPECT_EQ(proxy("https://localhost:6443"), "");
  EXPECT_EQ(proxy("https://127.0.0.1:6443"), "");
  EXPECT_EQ(proxy("https://127.8.0.1:6443"), "");
  EXPECT_EQ(proxy("https://[::1]:6443"), "");
  EXPECT_NE(proxy("https://128.0.0.1:6443"), "");
}

TEST_F(ProxyOf, NoProxyTakesNamesWithWhatIsBelowThem) {
  EXPECT_TRUE(excepted("example.com", "https://example.com"));
  EXPECT_TRUE(excepted("other, Example.COM ,x", "https://API.example.com"));
  EXPECT_FALSE(excepted("example.com", "https://notexample.com"));
  EXPECT_FALSE(excepted("example.com", "https://example.com.evil"));
  EXPECT_TRUE(excepted(".example.com", "https://a.example.com"));
  EXPECT_FALSE(excepted(".example.com", "https://example.com"));
  EXPECT_TRUE(excepted("*.example.com", "https://a.example.com"));
  EXPECT_TRUE(excepted("*", "https://anything"));
  EXPECT_FALSE(excepted("", "https://anything"));
  EXPECT_FALSE(excepted(",", "https://anything"));
}

TEST_F(ProxyOf, NoProxyTakesAddressesRangesAndPorts) {
  EXPECT_TRUE(excepted("10.96.0.1", "https://10.96.0.1"));
  EXPECT_FALSE(excepted("10.96.0.1", "https://10.96.0.10"));
  EXPECT_TRUE(excepted("10.96.0.0/12", "https://10.97.3.4"));
  EXPECT_FALSE(excepted("10.96.0.0/12", "https://10.112.0.1"));
  EXPECT_FALSE(excepted("10.96.0.0/99", "https://10.96.0.1"));
  EXPECT_FALSE(excepted("10.96.0.0/x", "https://10.96.0.1"));
  EXPECT_TRUE(excepted("0.0.0.0/0", "https://10.96.0.1"));
  EXPECT_FALSE(excepted("0.1", "https://10.96.0.1")) << "a suffix of an address means nothing";
  EXPECT_TRUE(excepted("fd00::1", "https://[fd00:0::1]:6443"));
  EXPECT_TRUE(excepted("[fd00::1]", "https://[fd00::1]:6443"));
  EXPECT_TRUE(excepted("[fd00::1]:6443", "https://[fd00::1]:6443"));
  EXPECT_FALSE(excepted("[fd00::1]:443", "https://[fd00::1]:6443"));
  EXPECT_TRUE(excepted("fd00::/8", "https://[fd12::1]"));
  EXPECT_FALSE(excepted("fd00::1", "https://[fd00::10]"));
  EXPECT_TRUE(excepted("host:6443", "https://host:6443"));
  EXPECT_FALSE(excepted("host:6443", "https://host:443"));
}

}  // namespace
}  // namespace holdfast::http
