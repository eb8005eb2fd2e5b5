#include "api/docs_link.h"

namespace holdfast::api {
namespace {

constexpr std::string_view kBefore = " More: ";
constexpr std::string_view kPage = "/reasons.html#";

}  // namespace

constexpr std::string_view kDocs = "https://holdfast.dev/docs/v" HOLDFAST_VERSION;

std::string reason_link(std::string_view reason) {
  std::string link = std::string(kDocs) + std::string(kPage);
  for (const char letter : reason) {
    link += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return link;
}

std::string with_reason_link(std::string text, std::string_view reason, std::size_t limit) {
  const std::string link = std::string(kBefore) + reason_link(reason);
  if (text.size() + link.size() < limit) text += link;
  return text;
}

std::string_view without_reason_link(std::string_view text) {
  const std::size_t before = text.rfind(kBefore);
  const bool has_link = before != std::string_view::npos &&
                        text.find(kPage, before) != std::string_view::npos &&
                        text.find(' ', before + kBefore.size()) == std::string_view::npos;
  return has_link ? text.substr(0, before) : text;
}

}  // namespace holdfast::api
