// The kinds that the operator watches, as it decodes them.
#pragma once

#include <array>

#include "client/kube/object.h"
#include "operator/codecs/at_rest.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/codecs/pod_protobuf.h"
#include "operator/membership/lease_codec.h"
#include "operator/queues/queue_codec.h"

namespace holdfast::fuzz {

inline const kube::Kind& kind_of(std::uint8_t choice) {
  static const auto* const kinds = [] {
    auto* const made = new std::array<kube::Kind, 5>();
    (*made)[0].decode = codecs::decode_cached_job;
    (*made)[1].decode = codecs::decode_cached_pod;
    (*made)[1].protobuf = &codecs::kPodProtobuf;
    (*made)[2].decode = kube::decode_bare;
    (*made)[3].decode = membership::decode_lease;
    (*made)[4].decode = queues::decode_queue;
    return made;
  }();
  return (*kinds)[choice % kinds->size()];
}

}  // namespace holdfast::fuzz
