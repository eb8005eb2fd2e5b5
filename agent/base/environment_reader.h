// Reads settings from an environment, and checks each of them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace holdfast::agent {

// The variable's value; none: it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The DurableJob schema's maximum of a Lease's duration; its minimum is 10.
inline constexpr std::int64_t kLongestLeaseSeconds = 3600;
inline constexpr std::int64_t kLongestSeconds = std::numeric_limits<std::int32_t>::max();

// Collects values. After the first error the others do not count.
class EnvironmentReader {
 public:
  explicit EnvironmentReader(const Environment& environment) : environment_(environment) {}

  std::string text(const char* name);
  std::string text_or(const char* name, const char* fallback) const;
  std::int64_t number(const char* name, std::int64_t least, std::int64_t most);
  // One part of a path on the API server.
  std::string object_name(const char* name);
  std::string path(const char* name, const char* fallback = nullptr);
  std::string address(const char* name);
  bool is_set(const char* name) const { return !environment_(name).value_or("").empty(); }
  void fail(const std::string& why);
  // The first one; empty: none.
  const std::string& error() const { return error_; }

 private:
  const Environment& environment_;
  std::string error_;
};

}  // namespace holdfast::agent
