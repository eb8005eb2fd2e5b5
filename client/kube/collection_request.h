// The request of a list or a watch of one kind. Pure.
#pragma once

#include <string>

#include "client/kube/object.h"

namespace holdfast::kube {

// Path and query: the caller's `query` (the part after '?'), then the kind's selectors, encoded.
std::string collection_target(const Kind& kind, const std::string& namespace_,
                              const std::string& query);

enum class Accept { kWatch, kList };

// The Accept header of a whole object. Holdfast never reads managedFields, which are a third of
// many objects. Kubernetes 1.37 can leave them out, with its feature gate ManagedFieldsOptOut.
// Older versions ignore the parameter.
inline constexpr const char* kWholeObject = "application/json;drop=metadata.managedFields";

// One object's metadata, if the server supports it.
inline constexpr const char* kMetadataAlone =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields,"
    "application/json;drop=metadata.managedFields";

// Events in protobuf, or else in JSON.
inline constexpr const char* kProtobufWatch =
    "application/vnd.kubernetes.protobuf,application/json;drop=metadata.managedFields";

// The Accept header: whole objects, or their metadata alone.
std::string accept_header(const Kind& kind, Accept accept);

}  // namespace holdfast::kube
