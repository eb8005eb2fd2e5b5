// Why the server's certificate was refused, in words that say what to do. OpenSSL itself reports
// only that the verification failed.
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

// The last refusal of any connection with one TLS configuration to one host. All of them would meet
// the same. Any thread.
class CertificateRefusal {
 public:
  void set(std::string why);
  std::string last() const;  // empty: none yet

 private:
  mutable Mutex mutex_;
  std::string why_ HOLDFAST_GUARDED_BY(mutex_);
};

// From now on handshakes of the context report to `refusal`. The context keeps it alive. The
// certificate must carry `host`, a name or an address. The set of accepted certificates does not
// change. Call it once for each context.
void record_refusals(SSL_CTX* context, std::string host,
                     std::shared_ptr<CertificateRefusal> refusal);

}  // namespace holdfast::http
