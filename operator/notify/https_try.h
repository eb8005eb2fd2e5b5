// One try to send one message over one connection. Internal to HttpsPoster. It runs on the thread
// of its io_context and keeps itself alive until `done`.
#pragma once

#include <boost/asio/io_context.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/http/endpoint.h"
#include "core/result.h"
#include "operator/notify/poster.h"

namespace holdfast::notify {

struct TrySettings {
  std::string host;
  int port = 443;
  std::string path;
  std::string ca;                      // PEM; empty: the system's authorities
  std::vector<std::string> addresses;  // those that it may connect to, in this order
  std::optional<http::Proxy> proxy;    // connects to them; none: this process does
  Duration timeout{};
  // An address has answered, or has not. On the same thread, before `done`.
  std::function<void(const std::string& address, bool worked)> report;
};
void begin_try(boost::asio::io_context& io, TrySettings settings, Message message,
               const std::function<void(Result<Answer>)>& done);

}  // namespace holdfast::notify
