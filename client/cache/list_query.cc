#include "client/cache/list_query.h"

#include "client/kube/percent_encode.h"

namespace holdfast::cache {

std::string list_query(Freshness freshness, std::uint64_t version, const std::string& token,
                       int limit) {
  std::string query;
  if (!token.empty()) {
    query = "continue=" + kube::percent_encode(token);
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
