#include "client/http/retry_after.h"

namespace holdfast::http {

std::optional<Duration> parse_retry_after(const std::string& text) {
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != text.npos) {
    return std::nullopt;
  }
  return std::chrono::seconds(std::stoi(text));
}

}  // namespace holdfast::http
