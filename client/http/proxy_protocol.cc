#include "client/http/proxy_protocol.h"

#include <arpa/inet.h>
#include <openssl/evp.h>

#include <array>

namespace holdfast::http {
namespace {

char high_byte(std::size_t number) { return static_cast<char>(number >> 8 & 0xff); }
char low_byte(std::size_t number) { return static_cast<char>(number & 0xff); }

bool has_login(const Proxy& proxy) { return !proxy.user.empty() || !proxy.password.empty(); }

}  // namespace

std::string base64(std::string_view text) {
  std::string coded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  coded.resize(static_cast<std::size_t>(size));
  return coded;
}

std::string connect_request(const Proxy& proxy, const std::string& host, int port) {
  Endpoint endpoint;
  endpoint.host = host;
  endpoint.port = port;
  const std::string server = endpoint.authority();
  std::string request = "CONNECT " + server + " HTTP/1.1\r\nHost: " + server + "\r\n";
  if (has_login(proxy)) {
    request += "Proxy-Authorization: Basic " + base64(proxy.user + ":" + proxy.password) + "\r\n";
  }
  return request + "\r\n";
}

std::string socks_greeting(const Proxy& proxy) {
  return has_login(proxy) ? std::string("\x05\x02\x00\x02", 4) : std::string("\x05\x01\x00", 3);
}

std::string socks_login(const Proxy& proxy) {
  std::string login("\x01", 1);
  login += low_byte(proxy.user.size());
  login += proxy.user;
  login += low_byte(proxy.password.size());
  login += proxy.password;
  return login;
}

std::string socks_request(const std::string& host, int port) {
  std::string request("\x05\x01\x00", 3);
  std::array<char, 16> address{};
  if (inet_pton(AF_INET, host.c_str(), address.data()) == 1) {
    request += '\x01';
    request.append(address.data(), 4);
  } else if (inet_pton(AF_INET6, host.c_str(), address.data()) == 1) {
    request += '\x04';
    request.append(address.data(), address.size());
  } else {
    request += '\x03';
    request += low_byte(host.size());
    request += host;
  }
  request += high_byte(static_cast<std::size_t>(port));
  request += low_byte(static_cast<std::size_t>(port));
  return request;
}

const char* socks_failure(char code) {
  switch (code) {
    case 1:
      return "it failed";
    case 2:
      return "its rules do not allow the connection";
    case 3:
      return "the network cannot be reached";
    case 4:
      return "the host cannot be reached";
    case 5:
      return "the connection was refused";
    case 6:
      return "no answer in time";
    default:
      return "it does not support the request";
  }
}

std::size_t socks_reply_rest(const std::string& reply) {
  constexpr std::size_t kPort = 2;
  if (reply[3] == 1) return 4 - 1 + kPort;
  if (reply[3] == 4) return 16 - 1 + kPort;
  return static_cast<unsigned char>(reply[4]) + kPort;
}

}  // namespace holdfast::http
