// The Api of a real cluster: client/kube on a thread of its own.
//
// Connects with the first request. Until then a wrong kubeconfig is no error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/exec_plugin.h"
#include "core/thread_annotations.h"
#include "plugin/base/api.h"

namespace holdfast::plugin {

class ClusterApi : public Api {
 public:
  // All as in kube::ConnectOptions.
  ClusterApi(std::string kubeconfig, std::string context,
             std::optional<kube::Login> login = std::nullopt);
  ~ClusterApi() override;

  Result<std::string> context_namespace() override;
  std::string server() override;
  Result<Json> get(const Resource& resource, const std::string& namespace_,
                   const std::string& name) override;
  Result<std::vector<Json>> list(const Resource& resource, const std::string& namespace_,
                                 const Selector& selector) override;
  Result<std::vector<kube::ObjectPtr>> first_page(const Resource& resource,
                                                  const std::string& namespace_,
                                                  Watch::Decode decode) override;
  Result<Json> create(const Resource& resource, const std::string& namespace_, const Json& object,
                      bool dry_run) override;
  Result<Json> patch(const Resource& resource, const std::string& namespace_,
                     const std::string& name, const Json& merge_patch) override;
  Result<std::string> text(const std::string& path) override;
  Result<std::unique_ptr<Mirror>> mirror(const Resource& resource, const std::string& namespace_,
                                         const Selector& selector) override;
  Result<std::unique_ptr<Watch>> watch(const Resource& resource, const std::string& namespace_,
                                       Watch::Decode decode, Watch::OnChange on_change) override;
  Time now() override;

  // Stops an exec plugin that still asks the user, and waits for its end: before the process ends
  // without destructors. Nothing is asked for after it.
  void end_login();

 private:
  struct Cluster;  // what lives on the loop
  class ClusterMirror;
  class ClusterWatch;
  Result<Cluster*> cluster();
  // The cluster once there are credentials for it.
  Result<Cluster*> logged_in();

  const std::string kubeconfig_;
  const std::string context_;
  const std::optional<kube::Login> login_;
  Mutex mutex_;                       // of the login: one at a time
  std::unique_ptr<Cluster> cluster_;  // made once
};

}  // namespace holdfast::plugin
