// S26 WrittenBack: a replica writes back what it does not know of a status, and starts nothing of a
// spec that it does not know.
#include <algorithm>

#include "tests/simulation/ledger.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/server/schema.h"

namespace holdfast::simulation {
namespace {

// The entries of these lists are the same ones as long as these fields are. `waiting` is replaced
// when the job waits for something else.
struct Place {
  const char* name;
  std::vector<std::string> keys;
};
const std::vector<Place>& places() {
  static const auto* const kPlaces = new std::vector<Place>{
      {"runs", {"index", "attempt"}}, {"history", {"attempt"}}, {"conditions", {"type"}},
      {"outbox", {"number"}},         {"stages", {"name"}},     {"admitting", {"uid", "attempt"}},
      {"waiting", {"reason"}}};
  return *kPlaces;
}

bool is_same(const Place& place, const Json& a, const Json& b) {
  return std::all_of(place.keys.begin(), place.keys.end(),
                     [&](const std::string& key) { return at(a, key) == at(b, key); });
}

std::string lost_of(const Place& place, const Json& before, const Json& after) {
  if (!is_same(place, before, after)) return "";
  return at(before, kNewerField) == at(after, kNewerField) ? "" : place.name;
}

// The place whose field has gone or changed; empty: none.
std::string lost(const Json& before, const Json& after) {
  if (at(before, kNewerField) != at(after, kNewerField)) return "status";
  for (const Place& place : places()) {
    const Json& was = at(before, place.name);
    const Json& now = at(after, place.name);
    if (was.is_object()) {
      if (std::string what = lost_of(place, was, now); !what.empty()) return what;
      continue;
    }
    for (const Json& entry : was) {
      for (const Json& same : now) {
        if (std::string what = lost_of(place, entry, same); !what.empty()) return what;
      }
    }
  }
  return "";
}

}  // namespace

void Ledger::check_written_back(const Applied& applied) {
  if (!applied.before || !applied.after) return;
  const std::string what = lost(at(*applied.before, "status"), at(*applied.after, "status"));
  if (what.empty()) return;
  complain("S26 WrittenBack: what a newer version wrote is lost from " + what + " of " +
           key_of(*applied.after));
}

void Ledger::check_known(const StatusWrite& write) {
  // A permit is given back by raising the attempt.
  if (write.next.attempt == write.old.attempt || gives_back(write)) return;
  if (write.before.at("spec").contains(kNewerField)) {
    complain("S26 WrittenBack: an attempt of a job whose spec is not known: " + write.name);
  }
}

}  // namespace holdfast::simulation
