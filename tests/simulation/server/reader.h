// GETs: single objects and lists, consistent, from the watch cache, or as of an older version.
#pragma once

#include "tests/simulation/server/query.h"
#include "tests/simulation/server/status.h"
#include "tests/simulation/server/storage.h"

namespace holdfast::simulation {

class Reader {
 public:
  explicit Reader(Storage& storage) : storage_(storage) {}

  ApiAnswer get(const Target& target, bool metadata_only);
  ApiAnswer list(const Target& target, bool metadata_only);

 private:
  Storage& storage_;
};

// The selectors of a target. A refusal comes back as the answer, with status 0 for none.
ApiAnswer parse_filter(const Target& target, Filter& filter);

// As PartialObjectMetadata.
std::string metadata_text(const Json& object);

}  // namespace holdfast::simulation
