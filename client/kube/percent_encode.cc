#include "client/kube/percent_encode.h"

#include <string_view>

namespace holdfast::kube {
namespace {

std::string encode(const std::string& text, std::string_view stay) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos || stay.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace

std::string percent_encode(const std::string& text) { return encode(text, ""); }
std::string encode_selector(const std::string& text) { return encode(text, ",!="); }

}  // namespace holdfast::kube
