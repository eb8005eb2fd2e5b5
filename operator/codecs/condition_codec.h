// Converts conditions between JSON and the reconciler's type. Pure.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
#pragma once

#include "core/json_fwd.h"
#include "core/json_view.h"
#include "reconciler/types.h"

namespace holdfast::controller {

reconciler::Condition decode_condition(const JsonView& json);
Json encode_condition(const reconciler::Condition& condition);

}  // namespace holdfast::controller
