// An HTTP proxy that tunnels CONNECT, for tests: every tunnel leads to one loopback port.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

class ConnectProxy {
 public:
  // `refuse`: answers 407 to everyone.
  explicit ConnectProxy(int target_port, bool refuse = false);
  ~ConnectProxy();

  int port() const;
  // The heads of the requests that came, as they came.
  std::vector<std::string> heads() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::test
