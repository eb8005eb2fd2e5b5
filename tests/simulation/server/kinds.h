// What the API server does to each kind on its way in: what it takes over from the stored object,
// what it fills in, what it refuses. Pure.
#pragma once

#include <string>

#include "core/json.h"
#include "tests/simulation/server/resources.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

void prepare_create(const Resource& resource, Json& object);

// `subresource` is "" or "status". The other half is taken over from the stored object.
void prepare_update(const Resource& resource, const std::string& subresource, const Json& old,
                    Json& object);

// False: it cannot even be decoded as what it should be.
bool is_readable(const Resource& resource, const Json& object);

// `old` is null for a create.
Causes validate(const Resource& resource, const Json& object, const Json* old,
                const std::string& subresource);

// metadata as every kind has it.
Causes validate_metadata(const Resource& resource, const Json& object, const Json* old);

// True when what a generation counts differs: all but metadata and status.
bool spec_differs(const Json& old, const Json& object);

}  // namespace holdfast::simulation
