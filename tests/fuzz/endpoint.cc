// The server's URL, and whether a proxy is used for it. Lines: URL, default scheme, NO_PROXY.
#include "client/http/endpoint.h"
#include "tests/fuzz/fuzz.h"

using namespace holdfast;
using http::Endpoint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string url = input.line();
  const std::string scheme = input.line();
  const std::string exceptions = input.rest();
  const Result<Endpoint> endpoint = http::parse_endpoint(url, scheme);
  if (!endpoint.ok()) {
    FUZZ_REQUIRE(endpoint.error().code == ErrorCode::kInvalid);
    FUZZ_REQUIRE(!endpoint.error().message.empty());
    return 0;
  }
  FUZZ_REQUIRE(!endpoint->host.empty());
  FUZZ_REQUIRE(endpoint->port >= 1 && endpoint->port <= 65535);
  FUZZ_REQUIRE(endpoint->path.empty() || endpoint->path.back() != '/');
  // Its URL shows no password, and leads to the same place.
  const Result<Endpoint> again = http::parse_endpoint(endpoint->url());
  FUZZ_REQUIRE(again.ok());
  FUZZ_REQUIRE(again->tls == endpoint->tls && again->host == endpoint->host);
  FUZZ_REQUIRE(again->port == endpoint->port && again->path == endpoint->path);
  FUZZ_REQUIRE(again->user_info.empty());

  const auto proxy_with = [&](const std::string& no_proxy) {
    return http::proxy_from_environment(*endpoint, [&](const std::string& name) -> std::string {
      if (name == "NO_PROXY") return no_proxy;
      return name == "HTTPS_PROXY" || name == "HTTP_PROXY" ? "http://proxy:1" : "";
    });
  };
  const std::string proxy = proxy_with(exceptions);
  FUZZ_REQUIRE(proxy.empty() || proxy == "http://proxy:1");
  // More exceptions mean less proxy.
  if (proxy.empty()) FUZZ_REQUIRE(proxy_with(exceptions + ",elsewhere").empty());
  FUZZ_REQUIRE(proxy_with("*").empty());
  FUZZ_REQUIRE(proxy_with(endpoint->host).empty());
  return 0;
}
