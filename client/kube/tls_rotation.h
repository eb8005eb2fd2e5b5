// Reads the files of the CA and the client certificate anew each `period` and hands them on when
// something changed. What was read last stays in use while they cannot be read, or are refused: a
// certificate and its key change one after the other. Loop thread only.
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
  // An Error from it: the new contents are not usable (yet); they are offered again.
  using OnChange = std::function<Status(const http::TlsConfig&)>;

  // `current` is what is in use now. `files` outlives it. A configuration without files needs no
  // timer and has none.
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
