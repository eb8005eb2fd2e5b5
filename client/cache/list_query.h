// The queries of lists and watches: the part after '?', without selectors and timeouts. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::cache {

enum class Freshness {
  kAny,         // from any server's memory
  kNotOlder,    // than a version
  kConsistent,  // the truth
};

// A page of a list. A token continues a list; the first page settled its freshness. limit 0:
// everything in one answer.
std::string list_query(Freshness freshness, std::uint64_t version, const std::string& token,
                       int limit);

// One object, consistently.
std::string look_query();

// A list through the watch, which then goes on as a watch. Not for kAny: a consistent stream is as
// cheap.
std::string stream_query(Freshness freshness, std::uint64_t version);

// The events after `version`.
std::string watch_query(std::uint64_t version);

}  // namespace holdfast::cache
