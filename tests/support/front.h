// A door to a server on loopback, for tests. It is on any address, behind TLS, or says words of its
// own before it carries bytes (a SOCKS proxy).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/certificates.h"

namespace holdfast::test {

class Front {
 public:
  // Exactly so many bytes from the client; empty: it has gone.
  using Read = std::function<std::string(std::size_t size)>;
  using Write = std::function<void(const std::string& bytes)>;
  struct Config {
    std::string address = "127.0.0.1";
    int target_port = 0;  // on 127.0.0.1
    std::optional<KeyPair> identity;
    // False: the client is sent away. Any thread.
    std::function<bool(const Read&, const Write&)> greet;
  };
  explicit Front(Config config);
  ~Front();

  int port() const;
  // False: this machine has no such address.
  static bool can_listen(const std::string& address);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::test
