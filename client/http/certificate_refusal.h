// Why the server's certificate was refused, in words that say what to do. OpenSSL tells whoever
// asked for the handshake no more than that it was.
//
//   auto refusal = std::make_shared<CertificateRefusal>();
//   record_refusals(context, "10.0.0.1", refusal);
//   ... a handshake fails with SSL_R_CERTIFICATE_VERIFY_FAILED ...
//   refusal->last();  // "it has no name for \"10.0.0.1\", only for DNS:kubernetes; ..."
#pragma once

#include <memory>
#include <string>

#include "core/thread_annotations.h"

using SSL_CTX = struct ssl_ctx_st;

namespace holdfast::http {

// The last refusal of all connections that are made with one TLS configuration to one host: any of
// them would have met the same. Any thread.
class CertificateRefusal {
 public:
  void set(std::string why);
  std::string last() const;  // empty: none yet

 private:
  mutable Mutex mutex_;
  std::string why_ HOLDFAST_GUARDED_BY(mutex_);
};

// From now on handshakes of the context tell `refusal`, which the context keeps alive. `host` is
// what the certificate must be for. What is accepted does not change. Once for each context.
void record_refusals(SSL_CTX* context, std::string host,
                     std::shared_ptr<CertificateRefusal> refusal);

}  // namespace holdfast::http
