// Where the API server is: the parts of a URL, and the proxy to use for it.
#pragma once

#include <functional>
#include <string>

#include "core/result.h"

namespace holdfast::http {

struct Endpoint {
  bool tls = true;
  std::string host;  // a name or an address, IPv6 without brackets
  int port = 443;
  std::string path;       // without a trailing slash; often empty
  std::string user_info;  // "user:password" as written, for proxies

  std::string url() const;
  std::string authority() const;  // host:port, as in a URL
};

// Refuses URLs that the transport cannot reach. The message says what to do. A URL without a scheme
// gets `default_scheme`. The message never shows `user_info`.
Result<Endpoint> parse_endpoint(const std::string& url,
                                const std::string& default_scheme = "https");

// True for an IPv4 or IPv6 address, false for a name.
bool is_ip_literal(const std::string& host);

// A proxy: http://, https://, socks5:// or socks5h://, with a user and a password or without. It
// looks names up itself, as with Go's net/http. A URL without a scheme is http://.
struct Proxy {
  enum class Kind { kHttp, kHttps, kSocks5 };
  Kind kind = Kind::kHttp;
  Endpoint at;
  std::string user;  // decoded
  std::string password;

  std::string url() const;  // without user and password
};
Result<Proxy> parse_proxy(const std::string& url);

// The proxy's URL for this endpoint, empty for none. It comes from HTTPS_PROXY, HTTP_PROXY and
// NO_PROXY, or their lower-case forms, with the rules of Go's net/http. NO_PROXY lists:
// - names, with all names below them,
// - ".name", which means only the names below it,
// - addresses and CIDR ranges,
// - "*".
// Names and addresses may have a port. localhost and loopback addresses never use a proxy.
using Environment = std::function<std::string(const std::string& name)>;
std::string proxy_from_environment(const Endpoint& endpoint, const Environment& environment);

// getenv; empty if the variable is not set.
std::string process_environment(const std::string& name);

}  // namespace holdfast::http
