// Where the API server keeps Leases (coordination.k8s.io/v1).
#pragma once

namespace holdfast::kube {

inline constexpr const char* kLeaseGroupPath = "/apis/coordination.k8s.io/v1";
inline constexpr const char* kLeasePlural = "leases";

}  // namespace holdfast::kube
