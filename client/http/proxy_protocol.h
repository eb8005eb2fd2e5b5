// What a client says to a proxy, and how it reads the answer: HTTP (RFC 9110, 9.3.6) and SOCKS5
// (RFC 1928 and 1929). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "client/http/endpoint.h"

namespace holdfast::http {

std::string base64(std::string_view text);

// The head of a CONNECT to the server.
std::string connect_request(const Proxy& proxy, const std::string& host, int port);

// The longest host, user or password in SOCKS5.
inline constexpr std::size_t kSocksTextLimit = 255;
// Offers a login only if there is one.
std::string socks_greeting(const Proxy& proxy);
std::string socks_login(const Proxy& proxy);
// CONNECT. The proxy looks a name up.
std::string socks_request(const std::string& host, int port);
// Why the proxy refused, from the second byte of its reply.
const char* socks_failure(char code);
// How much of the reply to CONNECT follows its first five bytes. The fifth is the first byte of the
// address, which is its length if it is a name.
std::size_t socks_reply_rest(const std::string& reply);

}  // namespace holdfast::http
