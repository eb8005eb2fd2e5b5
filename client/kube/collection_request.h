// What a list or a watch of one kind asks the server for. Pure.
#pragma once

#include <string>

#include "client/kube/object.h"

namespace holdfast::kube {

// Path and query: the caller's `query` (what follows '?'), then the kind's selectors, encoded.
std::string collection_target(const Kind& kind, const std::string& namespace_,
                              const std::string& query);

enum class Accept { kObject, kList };

// The Accept header of a whole object. Nothing here reads managedFields, which are a third of many
// objects. Kubernetes 1.37 leaves them out when it is asked to and its feature gate
// ManagedFieldsOptOut is on; older versions ignore the parameter.
inline constexpr const char* kWholeObject = "application/json;drop=metadata.managedFields";

// One object's metadata alone, where the server knows how.
inline constexpr const char* kMetadataAlone =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields,"
    "application/json;drop=metadata.managedFields";

// The Accept header: whole objects, or their metadata alone.
std::string accept_header(const Kind& kind, Accept accept);

}  // namespace holdfast::kube
