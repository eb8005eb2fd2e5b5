#include "operator/cache/list_query.h"

#include <string_view>

namespace holdfast::cache {
namespace {

std::string percent_encode(const std::string& text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace

std::string list_query(Freshness freshness, std::uint64_t version, const std::string& token,
                       int limit) {
  std::string query;
  if (!token.empty()) {
    query = "continue=" + percent_encode(token);
  } else if (freshness == Freshness::kAny) {
    query = "resourceVersion=0";
  } else if (freshness == Freshness::kNotOlder) {
    query = "resourceVersion=" + std::to_string(version) + "&resourceVersionMatch=NotOlderThan";
  }
  if (limit > 0) query += (query.empty() ? "limit=" : "&limit=") + std::to_string(limit);
  return query;
}

std::string look_query() { return "limit=1"; }

std::string stream_query(Freshness freshness, std::uint64_t version) {
  std::string query =
      "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  if (freshness == Freshness::kNotOlder) query += "&resourceVersion=" + std::to_string(version);
  return query;
}

std::string watch_query(std::uint64_t version) {
  return "allowWatchBookmarks=true&resourceVersion=" + std::to_string(version);
}

}  // namespace holdfast::cache
