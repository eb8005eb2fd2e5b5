// The queries of lists and watches: what follows '?', selectors and time-outs left out. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::cache {

enum class Freshness {
  kAny,         // from any server's memory
  kNotOlder,    // than a version
  kConsistent,  // the truth
};

// A page of a list. A token continues a list, whose freshness was settled by its first page.
// limit 0: all in one answer.
std::string list_query(Freshness freshness, std::uint64_t version, const std::string& token,
                       int limit);

// One object, consistently.
std::string look_query();

// A list through the watch, which then goes on as a watch. It has no kAny: consistent is as cheap.
std::string stream_query(Freshness freshness, std::uint64_t version);

// What happened after `version`.
std::string watch_query(std::uint64_t version);

}  // namespace holdfast::cache
