// The Api of a real cluster: client/kube on a thread of its own.
//
// Connects with the first request. Until then a wrong kubeconfig is no error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugin/api.h"

namespace holdfast::plugin {

class ClusterApi : public Api {
 public:
  // Both as in kube::ConnectOptions.
  ClusterApi(std::string kubeconfig, std::string context);
  ~ClusterApi() override;

  Result<std::string> context_namespace() override;
  Result<Json> get(const Resource& resource, const std::string& namespace_,
                   const std::string& name) override;
  Result<std::vector<Json>> list(const Resource& resource, const std::string& namespace_,
                                 const Selector& selector) override;
  Result<Json> create(const Resource& resource, const std::string& namespace_, const Json& object,
                      bool dry_run) override;
  Result<Json> patch(const Resource& resource, const std::string& namespace_,
                     const std::string& name, const Json& merge_patch) override;
  Result<std::string> text(const std::string& path) override;
  Result<std::unique_ptr<Mirror>> mirror(const Resource& resource, const std::string& namespace_,
                                         const Selector& selector) override;
  Time now() override;

 private:
  struct Cluster;  // what lives on the loop
  class ClusterMirror;
  Result<Cluster*> cluster();

  const std::string kubeconfig_;
  const std::string context_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace holdfast::plugin
