#include "client/http/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace holdfast::http {
namespace {

constexpr std::string_view kExpected = "; expected https://host:port";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || last != text.data() + text.size()) return std::nullopt;
  if (port < 1 || port > 65535) return std::nullopt;
  return port;
}

// An address as 16 bytes, IPv4 as ::ffff:a.b.c.d.
std::optional<std::array<unsigned char, 16>> parse_address(const std::string& text) {
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  std::array<unsigned char, 4> v4{};
  if (inet_pton(AF_INET, text.c_str(), v4.data()) != 1) return std::nullopt;
  bytes[10] = bytes[11] = 0xff;
  std::copy(v4.begin(), v4.end(), bytes.begin() + 12);
  return bytes;
}

bool in_range(const std::string& host, const std::string& network, const std::string& bits_text) {
  const auto address = parse_address(host);
  const auto base = parse_address(network);
  int bits = 0;
  const auto [last, error] =
      std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
  if (!address || !base || error != std::errc() || *last != '\0' || bits < 0) return false;
  if (network.find(':') == std::string::npos) bits += 96;
  if (bits > 128) return false;
  for (int bit = 0; bit < bits; ++bit) {
    const int mask = 0x80 >> (bit % 8);
    if (((*address)[bit / 8] & mask) != ((*base)[bit / 8] & mask)) return false;
  }
  return true;
}

bool matches(const Endpoint& endpoint, std::string rule) {
  rule.erase(0, rule.find_first_not_of(" \t"));
  rule.erase(rule.find_last_not_of(" \t") + 1);
  rule = lower(std::move(rule));
  if (rule.empty()) return false;
  if (rule == "*") return true;
  const std::string host = lower(endpoint.host);
  if (rule[0] == '[') {
    const std::size_t close = rule.find(']');
    if (close == std::string::npos) return false;
    if (close + 1 < rule.size()) {
      if (rule[close + 1] != ':') return false;
      if (parse_port(std::string_view(rule).substr(close + 2)) != endpoint.port) return false;
    }
    rule = rule.substr(1, close - 1);
  }
  const std::size_t slash = rule.find('/');
  if (slash != std::string::npos) {
    return in_range(host, rule.substr(0, slash), rule.substr(slash + 1));
  }
  const std::size_t colon = rule.rfind(':');
  if (colon != std::string::npos && rule.find(':') == colon) {
    if (parse_port(std::string_view(rule).substr(colon + 1)) != endpoint.port) return false;
    rule.resize(colon);
  }
  if (rule.rfind("*.", 0) == 0) rule.erase(0, 1);
  if (is_ip_literal(rule) || is_ip_literal(host)) {
    return is_ip_literal(rule) && parse_address(rule) == parse_address(host);
  }
  const bool only_below = rule[0] == '.';
  const std::string suffix = only_below ? rule : "." + rule;
  if (!only_below && host == rule) return true;
  return host.size() > suffix.size() &&
         host.compare(host.size() - suffix.size(), suffix.size(), suffix) == 0;
}

bool is_loopback(const std::string& host) {
  return lower(host) == "localhost" || in_range(host, "127.0.0.0", "8") || host == "::1";
}

}  // namespace

bool is_ip_literal(const std::string& host) { return parse_address(host).has_value(); }

std::string Endpoint::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string Endpoint::url() const { return (tls ? "https://" : "http://") + authority() + path; }

Result<Endpoint> parse_endpoint(const std::string& url, const std::string& default_scheme) {
  const auto refuse = [](const std::string& why) {
    return make_error(ErrorCode::kInvalid, why + std::string(kExpected));
  };
  const std::size_t scheme_end = url.find("://");
  const std::string scheme =
      scheme_end == std::string::npos ? default_scheme : lower(url.substr(0, scheme_end));
  std::string rest = scheme_end == std::string::npos ? url : url.substr(scheme_end + 3);
  if (scheme != "https" && scheme != "http") {
    return refuse("a URL with the scheme \"" + scheme + "\" is not supported");
  }
  Endpoint endpoint;
  endpoint.tls = scheme == "https";
  endpoint.port = endpoint.tls ? 443 : 80;
  const std::size_t path = rest.find_first_of("/?#");
  if (path != std::string::npos) {
    if (rest.find_first_of("?#", path) != std::string::npos) {
      return refuse("the URL has a query or a fragment");
    }
    endpoint.path = rest.substr(path);
    while (!endpoint.path.empty() && endpoint.path.back() == '/') endpoint.path.pop_back();
    rest.resize(path);
  }
  const std::size_t user = rest.rfind('@');
  if (user != std::string::npos) {
    endpoint.user_info = rest.substr(0, user);
    rest.erase(0, user + 1);
  }
  std::string address;
  if (!rest.empty() && rest[0] == '[') {
    const std::size_t close = rest.find(']');
    if (close == std::string::npos) return refuse("the URL has no valid host");
    address = lower(rest.substr(1, close - 1));
    const bool is_v6 = address.find(':') != std::string::npos && is_ip_literal(address);
    if (!is_v6) return refuse("the URL has no valid IPv6 address (a zone is not supported)");
    rest.erase(0, close + 1);
    if (!rest.empty() && rest[0] != ':') return refuse("the URL has no valid port");
  }
  const std::size_t colon = rest.find(':');
  if (colon != std::string::npos) {
    const auto port = parse_port(std::string_view(rest).substr(colon + 1));
    if (!port) return refuse("the URL has no valid port");
    endpoint.port = *port;
    rest.resize(colon);
  }
  const auto is_host = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  };
  if (!address.empty()) {
    endpoint.host = address;
    return endpoint;
  }
  if (rest.empty() || rest[0] == '.' || !std::all_of(rest.begin(), rest.end(), is_host)) {
    return refuse("the URL has no valid host");
  }
  endpoint.host = rest;
  return endpoint;
}

std::string Proxy::url() const {
  return kind == Kind::kSocks5 ? "socks5://" + at.authority() : at.url();
}

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                       hex_digit(text[i + 2]) >= 0;
    decoded +=
        coded ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    if (coded) i += 2;
  }
  return decoded;
}

}  // namespace

Result<Proxy> parse_proxy(const std::string& url) {
  constexpr int kSocksPort = 1080;
  Proxy proxy;
  const std::size_t scheme_end = url.find("://");
  const std::string scheme =
      scheme_end == std::string::npos ? "http" : lower(url.substr(0, scheme_end));
  std::string rest = scheme_end == std::string::npos ? url : url.substr(scheme_end + 3);
  if (scheme == "socks5" || scheme == "socks5h") {
    proxy.kind = Proxy::Kind::kSocks5;
  } else if (scheme == "https") {
    proxy.kind = Proxy::Kind::kHttps;
  } else if (scheme != "http") {
    return make_error(ErrorCode::kInvalid,
                      "a proxy with the scheme \"" + scheme +
                          "\" is not supported; use http://, https:// or socks5://");
  }
  const bool is_tls = proxy.kind == Proxy::Kind::kHttps;
  Result<Endpoint> at = parse_endpoint((is_tls ? "https://" : "http://") + rest);
  if (!at.ok()) return make_error(ErrorCode::kInvalid, "proxy: " + at.error().message);
  proxy.at = std::move(*at);
  proxy.at.path.clear();
  const std::size_t user = rest.rfind('@', rest.find_first_of("/?#"));
  const std::string after_user = rest.substr(user == std::string::npos ? 0 : user + 1);
  const std::size_t port = after_user.rfind(':', after_user.find_first_of("/?#"));
  const bool has_port =
      port != std::string::npos && after_user.find(']', port) == std::string::npos;
  if (proxy.kind == Proxy::Kind::kSocks5 && !has_port) proxy.at.port = kSocksPort;
  const std::string& login = proxy.at.user_info;
  const std::size_t colon = std::min(login.find(':'), login.size());
  proxy.user = percent_decoded(login.substr(0, colon));
  proxy.password = percent_decoded(login.substr(std::min(colon + 1, login.size())));
  return proxy;
}

std::string proxy_from_environment(const Endpoint& endpoint, const Environment& environment) {
  const auto either = [&](const std::string& name) {
    const std::string value = environment(name);
    return value.empty() ? environment(lower(name)) : value;
  };
  const std::string proxy = either(endpoint.tls ? "HTTPS_PROXY" : "HTTP_PROXY");
  if (proxy.empty() || is_loopback(endpoint.host)) return "";
  const std::string exceptions = either("NO_PROXY");
  std::size_t begin = 0;
  while (begin <= exceptions.size()) {
    const std::size_t end = std::min(exceptions.find(',', begin), exceptions.size());
    if (matches(endpoint, exceptions.substr(begin, end - begin))) return "";
    begin = end + 1;
  }
  return proxy;
}

std::string process_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

}  // namespace holdfast::http
