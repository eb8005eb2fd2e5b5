// The fields of a DurableJob that a batch/v1 Job does not have, from the Job's annotations
// `holdfast.dev/<field>`: docs/lane.md. Pure.
#pragma once

#include <string_view>

#include "core/json.h"
#include "lane/mapping.h"

namespace holdfast::lane {

// One of these annotations, or what the lane has written down in a Job: it means nothing in a
// DurableJob.
bool is_ours(std::string_view annotation);

// Adds them to the spec of a DurableJob. An annotation with an unknown field, or with a value that
// is no value of the field, is an error. The API server checks the rest when the DurableJob is
// created.
void add_annotated_fields(const Json& annotations, Json& spec, Differences& differences);

}  // namespace holdfast::lane
