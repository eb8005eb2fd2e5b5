// How the API server prepares each kind of object for storage: the fields that it keeps from the
// stored object, fills in, or refuses. Pure.
#pragma once

#include <string>

#include "core/json.h"
#include "tests/simulation/server/resources.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

void prepare_create(const Resource& resource, Json& object);

// `subresource` is "" or "status". The other half stays as stored.
void prepare_update(const Resource& resource, const std::string& subresource, const Json& old,
                    Json& object);

// False: it cannot be decoded as its kind.
bool is_readable(const Resource& resource, const Json& object);

// `old` is null for a create.
Causes validate(const Resource& resource, const Json& object, const Json* old,
                const std::string& subresource);

// The metadata, for every kind.
Causes validate_metadata(const Resource& resource, const Json& object, const Json* old);

// True if the generation must rise: anything but metadata and status differs.
bool spec_differs(const Json& old, const Json& object);

}  // namespace holdfast::simulation
