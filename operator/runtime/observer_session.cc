#include "operator/runtime/observer_session.h"

#include <string>
#include <utility>

namespace holdfast::runtime {
namespace {

// Looks at nodes, the Lease, the ConfigMap, and lists.
constexpr std::size_t kMostRequests = 48;

}  // namespace

ObserverSession::ObserverSession(Dependencies dependencies,
                                 std::unique_ptr<kube::Connection> connection,
                                 const Options& options)
    : Work(std::move(dependencies), std::move(connection)),
      observer_({deps_.loop, client(), deps_.random, deps_.log},
                {options.replica.namespace_,
                 options.replica.id + "-" + std::to_string(deps_.random.below(1'000'000)),
                 options.replica.timings, options.rescue_namespaces(), options.rescue.owners,
                 options.rescue.most_per_minute}) {
  Metrics::Sources sources;
  sources.watches = [this] { return states_of(observer_.informers()); };
  // An alert says when no replica is at work.
  sources.ownership = [this] {
    membership::OwnershipReport report;
    if (observer_.acting()) report.state = membership::MembershipState::kActing;
    return report;
  };
  deps_.metrics.set_sources(std::move(sources));
}

ObserverSession::~ObserverSession() { deps_.metrics.set_sources({}); }

Result<std::unique_ptr<Work>> ObserverSession::connect(Dependencies dependencies,
                                                       const Options& options) {
  auto connection = open(dependencies, options, kMostRequests);
  if (!connection.ok()) return connection.error();
  return std::unique_ptr<Work>(
      new ObserverSession(std::move(dependencies), std::move(*connection), options));
}

}  // namespace holdfast::runtime
