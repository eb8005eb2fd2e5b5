#include "plugin/verbs/submit_key.h"

#include <openssl/evp.h>

#include <array>
#include <cctype>
#include <cmath>

namespace holdfast::plugin {
namespace {

// 40 bits of SHA-256. The key itself is compared, too.
constexpr std::size_t kHashCharacters = 10;
constexpr std::size_t kPrefixCharacters = 40;

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4U];
    hex += kDigits[digest[i] & 15U];
  }
  return hex;
}

Json canonical(const Json& json) {
  if (json.is_object()) {
    Json members = Json::object();
    for (const auto& [key, value] : json.items()) {
      if (!value.is_null()) members[key] = canonical(value);
    }
    return members;
  }
  if (json.is_array()) {
    Json elements = Json::array();
    for (const Json& value : json) elements.push_back(canonical(value));
    return elements;
  }
  // 3 and 3.0 are the same number, in YAML and in JSON.
  if (json.is_number_float()) {
    const double number = json.get<double>();
    if (std::trunc(number) == number && std::abs(number) < 1e15) {
      return static_cast<std::int64_t>(number);
    }
  }
  return json;
}

}  // namespace

std::string name_of_key(std::string_view key) {
  std::string prefix;
  for (const char c : key) {
    if (prefix.size() == kPrefixCharacters) break;
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) != 0) {
      prefix += static_cast<char>(std::tolower(byte));
    } else if (!prefix.empty() && prefix.back() != '-') {
      prefix += '-';
    }
  }
  while (!prefix.empty() && prefix.back() == '-') prefix.pop_back();
  if (prefix.empty()) prefix = "job";
  return prefix + "-" + sha256(key).substr(0, kHashCharacters);
}

std::string trial_name(const std::string& name, const std::string& hash) {
  const std::string digits = sha256(name + hash).substr(0, kHashCharacters - 1);
  return name.substr(0, name.size() - kHashCharacters) + "x" + digits;
}

std::string spec_hash(const Json& spec) { return "sha256:" + sha256(canonical(spec).dump()); }

}  // namespace holdfast::plugin
