// Who may ask the page's server: only the page that it has served itself.
//
// 127.0.0.1 is open to every program and every user of the machine, and to every web page that a
// browser there shows. So a request needs the token, which only the address that was printed has.
// Host is checked against names that lead to 127.0.0.1 (DNS rebinding), and Origin and
// Sec-Fetch-Site against other pages. No cookie: cookies are the same for all ports. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/ui/web_server.h"

namespace holdfast::plugin {

// 256 bits from the operating system, in hexadecimal; empty: it has none.
std::string random_token();

class Guard {
 public:
  Guard(std::string token, std::uint16_t port) : token_(std::move(token)), port_(port) {}

  // The page's files, which anybody may read. None: it may.
  std::optional<WebReply> refuse_file(const WebRequest& request) const;
  // What the cluster says, and actions.
  std::optional<WebReply> refuse_call(const WebRequest& request) const;

 private:
  bool is_own_origin(const std::string& origin) const;

  const std::string token_;
  const std::uint16_t port_;
};

}  // namespace holdfast::plugin
