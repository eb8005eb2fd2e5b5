// Reads the files of the CA and the client certificate every `period` and reports changes. The last
// usable contents stay in use while the files cannot be read or are refused. A certificate and its
// key do not change at the same moment. Loop thread only.
#pragma once

#include <functional>

#include "client/http/transport.h"
#include "client/kube/config.h"
#include "core/file_reader.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/result.h"

namespace holdfast::kube {

class TlsRotation {
 public:
  // An Error means that the new contents are not usable (yet). They are offered again.
  using OnChange = std::function<Result<>(const http::TlsConfig&)>;

  // `current` is in use now. `files` must outlive the object. Without files there is no timer.
  TlsRotation(Loop& loop, Log log, const FileReader& files, const ClusterConfig& config,
              http::TlsConfig current, Duration period, OnChange on_change);
  ~TlsRotation();
  TlsRotation(const TlsRotation&) = delete;
  TlsRotation& operator=(const TlsRotation&) = delete;

 private:
  void schedule();
  void check();

  Loop& loop_;
  const Log log_;
  const FileReader& files_;
  const ClusterConfig config_;
  const Duration period_;
  const OnChange on_change_;
  http::TlsConfig current_;
  TimerId timer_ = 0;
  bool failing_ = false;
};

}  // namespace holdfast::kube
