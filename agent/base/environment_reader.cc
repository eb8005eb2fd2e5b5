#include "agent/base/environment_reader.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "client/http/endpoint.h"

namespace holdfast::agent {
namespace {

constexpr std::size_t kMaxNameLength = 253;

}  // namespace

std::string EnvironmentReader::text(const char* name) {
  std::string value = environment_(name).value_or("");
  if (value.empty()) fail(std::string(name) + " is not set");
  return value;
}

std::string EnvironmentReader::text_or(const char* name, const char* fallback) const {
  const std::string value = environment_(name).value_or("");
  return value.empty() ? fallback : value;
}

std::int64_t EnvironmentReader::number(const char* name, std::int64_t least, std::int64_t most) {
  const std::string value = text(name);
  std::int64_t number = least;
  const char* const end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || last != end || number < least || number > most) {
    fail(std::string(name) + " is \"" + value + "\", not a whole number from " +
         std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

std::string EnvironmentReader::object_name(const char* name) {
  std::string value = text(name);
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  if (value.size() > kMaxNameLength || !std::all_of(value.begin(), value.end(), fits) ||
      value.find("..") != std::string::npos || value.starts_with('.')) {
    fail(std::string(name) + " is \"" + value + "\", not the name of an object");
  }
  return value;
}

std::string EnvironmentReader::path(const char* name, const char* fallback) {
  std::string value = fallback == nullptr ? text(name) : text_or(name, fallback);
  if (!value.starts_with('/') || value.ends_with('/')) {
    fail(std::string(name) + " is \"" + value + "\", not an absolute path");
  }
  return value;
}

std::string EnvironmentReader::address(const char* name) {
  std::string value = text(name);
  if (!http::is_ip_literal(value)) {
    fail(std::string(name) + " is \"" + value +
         "\", not an IP address, and names are not resolved here: the kubelet sets it to the "
         "address of the Service \"kubernetes\"");
  }
  return value;
}

void EnvironmentReader::fail(const std::string& why) {
  if (error_.empty()) error_ = why;
}

}  // namespace holdfast::agent
