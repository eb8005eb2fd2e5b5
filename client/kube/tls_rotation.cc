#include "client/kube/tls_rotation.h"

#include <utility>

namespace holdfast::kube {

TlsRotation::TlsRotation(Loop& loop, Log log, const FileReader& files, const ClusterConfig& config,
                         http::TlsConfig current, Duration period, OnChange on_change)
    : loop_(loop),
      log_(std::move(log)),
      files_(files),
      config_(config),
      period_(period),
      on_change_(std::move(on_change)),
      current_(std::move(current)) {
  const bool any =
      !(config_.ca_file.empty() && config_.certificate_file.empty() && config_.key_file.empty());
  if (any) schedule();
}

TlsRotation::~TlsRotation() { loop_.cancel(timer_); }

void TlsRotation::schedule() {
  timer_ = loop_.call_after(period_, [this] {
    schedule();
    check();
  });
}

void TlsRotation::check() {
  const Result<http::TlsConfig> tls = load_tls(config_, files_);
  const bool changed = tls.ok() && !(*tls == current_);
  const Result<> taken = !tls.ok() ? Result<>(tls.error())
                         : changed ? on_change_(*tls)
                                   : Result<>(Unit{});
  if (!taken.ok()) {
    if (!std::exchange(failing_, true)) {
      log_.warn("certificates cannot be renewed, the old ones are kept",
                {{"error", taken.error().message}});
    }
    return;
  }
  failing_ = false;
  if (!changed) return;
  current_ = *tls;
  log_.info("certificates were renewed from their files");
}

}  // namespace holdfast::kube
