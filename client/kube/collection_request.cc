#include "client/kube/collection_request.h"

#include "client/kube/percent_encode.h"

namespace holdfast::kube {

std::string collection_target(const Kind& kind, const std::string& namespace_,
                              const std::string& query) {
  std::string target = collection_path(kind.group_path, kind.plural, namespace_);
  char separator = '?';
  const auto append = [&](const std::string& part) {
    target += separator + part;
    separator = '&';
  };
  if (!query.empty()) append(query);
  if (!kind.label_selector.empty()) append("labelSelector=" + encode_selector(kind.label_selector));
  if (!kind.field_selector.empty()) append("fieldSelector=" + encode_selector(kind.field_selector));
  return target;
}

std::string accept_header(const Kind& kind, Accept accept) {
  if (!kind.metadata_only) {
    return kind.protobuf && accept == Accept::kWatch ? kProtobufWatch : kWholeObject;
  }
  if (accept == Accept::kWatch) return kMetadataAlone;
  return "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;"
         "drop=metadata.managedFields,application/json;drop=metadata.managedFields";
}

}  // namespace holdfast::kube
