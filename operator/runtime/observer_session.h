// The operator with --rescue=observe: it observes (rescue/observer.h), and does nothing else. It
// needs no CRD.
#pragma once

#include <memory>
#include <vector>

#include "operator/rescue/observer.h"
#include "operator/runtime/work.h"

namespace holdfast::runtime {

class ObserverSession : public Work {
 public:
  static Result<std::unique_ptr<Work>> connect(Dependencies dependencies, const Options& options);
  ~ObserverSession() override;

  void start() override { observer_.start(); }
  std::vector<cache::Informer*> needed() override { return observer_.informers(); }
  bool synced() override { return observer_.synced(); }

 private:
  ObserverSession(Dependencies dependencies, std::unique_ptr<kube::Connection> connection,
                  const Options& options);
  void finish(std::function<void()> ended) override { observer_.stop(std::move(ended)); }

  rescue::Observer observer_;
};

}  // namespace holdfast::runtime
