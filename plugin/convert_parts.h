// The parts of a conversion. Each changes the object in place, and adds notes and errors.
#pragma once

#include <string>
#include <string_view>

#include "plugin/convert.h"

namespace holdfast::plugin {

// Labels that the Job controller puts on Jobs and pods. They are dropped, because their values are
// the old Job's.
bool is_controller_label(std::string_view key);

// The pod template of a Job with this completionMode.
void convert_template(bool indexed, Json& pod_template, Conversion& conversion);
// podFailurePolicy and podReplacementPolicy.
void convert_policies(Json& spec, Conversion& conversion);
// completions, parallelism and the name's length.
void convert_runs(const Json& metadata, Json& spec, Conversion& conversion);

}  // namespace holdfast::plugin
