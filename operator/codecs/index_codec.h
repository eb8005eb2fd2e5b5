// Reads lists of indexes that others may have written. Pure. A list of a spec that cannot be read
// whole gives no indexes. A list of ended indexes keeps each part, so that no run happens again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/json_view.h"
#include "reconciler/api.h"

namespace holdfast::codecs {

// A list of a spec, such as "1,3-5". None: it is no list of rising numbers and ranges below
// `limit`, and no part of it counts. The API server cannot check all of a long text.
std::optional<reconciler::IndexSet> decode_indexes(const std::string& text, std::int64_t limit);
// The fields `indexes` of this spec that cannot be read, for Job::unknown: no run of such a job
// opens. Empty: none.
std::string unreadable_indexes(const JsonView& spec);
// A list of a status: the runs that have ended. In an edited list each part counts, in any order. A
// falling range counts as the rising one. Indexes beyond `limit` are left out. Other text does not
// count; the API server rejects it.
reconciler::IndexSet decode_ended_indexes(const std::string& text, std::int64_t limit);

}  // namespace holdfast::codecs
