// The way to what cpprestsdk cannot reach by itself: IPv6 addresses, and other proxies than
// http://. To cpprestsdk it is an HTTP proxy on loopback. It leads to one server only, and asks for
// a password that only this process knows. TLS with the server goes through it from end to end.
//
// It has a thread of its own, from open() to the destructor. port() and password() never change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/http/endpoint.h"
#include "core/result.h"

namespace holdfast::http {

class Tunnel {
 public:
  struct Config {
    std::string host;  // of the server: a name or an address
    int port = 443;
    std::optional<Proxy> proxy;
    std::string ca;  // PEM: the proxy's certificate may be signed by it, beside the system's CAs
  };
  // kTransient: this process has no descriptors or threads left.
  static Result<std::unique_ptr<Tunnel>> open(Config config);
  ~Tunnel();

  // New connections to the proxy trust this instead of Config::ca. Any thread. A failure changes
  // nothing.
  Result<> trust(const std::string& ca);

  int port() const;
  const std::string& password() const;
  static constexpr const char* kUser = "holdfast";

  // File descriptors: its listener, and three of its thread's events.
  static constexpr std::uint64_t kDescriptors = 4;
  // Of a connection through it: the socket of who connects, what the tunnel accepts, and the socket
  // to the proxy or the server.
  static constexpr std::uint64_t kPerConnection = 3;

 private:
  struct Impl;
  explicit Tunnel(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::http
