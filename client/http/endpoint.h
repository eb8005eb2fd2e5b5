// Where the API server is, and the way to it: a URL taken apart, and the proxy to use for it.
#pragma once

#include <functional>
#include <string>

#include "core/result.h"

namespace holdfast::http {

struct Endpoint {
  bool tls = true;
  std::string host;
  int port = 443;
  std::string path;       // without a slash at its end; often empty
  std::string user_info;  // "user:password" as written, for proxies

  std::string url() const;
};

// Refuses what the transport cannot reach, IPv6 literals included, with a message that says what to
// do. A URL without a scheme is taken as `default_scheme`. The message never shows `user_info`.
Result<Endpoint> parse_endpoint(const std::string& url,
                                const std::string& default_scheme = "https");

// Whether it is an IPv4 or IPv6 address and not a name.
bool is_ip_literal(const std::string& host);

// The proxy's URL for this endpoint, empty for none, from HTTPS_PROXY, HTTP_PROXY and NO_PROXY (or
// their lower-case forms), with the rules of Go's net/http: NO_PROXY lists names (with all below
// them), ".name" (only what is below it), addresses, CIDR ranges, each with an optional port, or
// "*"; localhost and loopback addresses never use a proxy.
using Environment = std::function<std::string(const std::string& name)>;
std::string proxy_from_environment(const Endpoint& endpoint, const Environment& environment);

// getenv, empty for what is not set.
std::string process_environment(const std::string& name);

}  // namespace holdfast::http
