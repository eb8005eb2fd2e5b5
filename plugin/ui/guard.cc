#include "plugin/ui/guard.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

namespace holdfast::plugin {
namespace {

constexpr std::string_view kBearer = "Bearer ";

std::string header(const WebRequest& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

WebReply refused(int status, const char* why) {
  return {status, "text/plain; charset=utf-8", std::string(why) + "\n"};
}

// In a time that does not depend on where they differ.
bool is_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return "";
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

bool Guard::is_own_origin(const std::string& origin) const {
  // Browsers leave out the port of plain HTTP.
  constexpr std::uint16_t kUsual = 80;
  const std::string port = ":" + std::to_string(port_);
  return std::ranges::any_of(
      std::array{"http://127.0.0.1", "http://localhost"},
      [&](const char* own) { return origin == own + port || (port_ == kUsual && origin == own); });
}

std::optional<WebReply> Guard::refuse_file(const WebRequest& request) const {
  if (!is_own_origin("http://" + header(request, "host"))) {
    return refused(421, "this address is not the page's: open the one that the program printed");
  }
  return std::nullopt;
}

std::optional<WebReply> Guard::refuse_call(const WebRequest& request) const {
  if (auto refusal = refuse_file(request)) return refusal;
  const std::string origin = header(request, "origin");
  const std::string site = header(request, "sec-fetch-site");
  const bool is_other_page = (!origin.empty() && !is_own_origin(origin)) ||
                             (!site.empty() && site != "same-origin" && site != "none");
  if (is_other_page) return refused(403, "another page may not ask");
  const std::string given = header(request, "authorization");
  const bool is_known = !token_.empty() && given.starts_with(kBearer) &&
                        is_equal(std::string_view(given).substr(kBearer.size()), token_);
  if (!is_known) {
    return refused(401,
                   "no token, or that of another run: open the address that the program printed");
  }
  return std::nullopt;
}

}  // namespace holdfast::plugin
