#include "plugin/explain/gaps.h"

namespace holdfast::plugin {

std::optional<std::string> fill_gaps(std::string_view text, const Gaps& gaps) {
  std::string filled;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    filled += text.substr(0, open);
    if (open == std::string_view::npos) break;
    text.remove_prefix(open);
    const std::size_t close = text.find('}');
    const std::string_view name = text.substr(1, close == std::string_view::npos ? 0 : close - 1);
    // Braces of JSON are no gaps.
    const bool is_gap = !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") ==
                                             std::string_view::npos;
    if (!is_gap) {
      filled += '{';
      text.remove_prefix(1);
      continue;
    }
    const auto value = gaps.find(name);
    if (value == gaps.end() || value->second.empty()) return std::nullopt;
    filled += value->second;
    text.remove_prefix(close + 1);
  }
  return filled;
}

}  // namespace holdfast::plugin
