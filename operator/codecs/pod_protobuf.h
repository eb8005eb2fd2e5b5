// The fields of a pod that decode_pod() reads, by their numbers in protobuf: k8s.io/api/core/v1,
// generated.proto. A field that the decoder learns to read belongs here too.
#pragma once

#include "client/kube/protobuf.h"

namespace holdfast::codecs {

extern const kube::ProtobufMessage kPodProtobuf;

}  // namespace holdfast::codecs
