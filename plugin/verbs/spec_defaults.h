// The defaults of a DurableJob's spec, as docs/api.md lists them. The API server fills in some, and
// the operator assumes the others. So a spec means the same with and without them. Pure.
//
// The template's fields have no defaults here: Kubernetes fills them in when it makes a pod.
#pragma once

#include "core/json.h"

namespace holdfast::plugin {

// The spec with each default spelled out, where the object that has the field is there.
Json with_defaults(Json spec);

// The spec without the fields that only say their default.
Json without_defaults(Json spec);

}  // namespace holdfast::plugin
