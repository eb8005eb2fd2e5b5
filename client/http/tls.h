// Applies a TlsConfig to an OpenSSL context. Only the cluster's CA is trusted, and TLS 1.2 is the
// minimum. The certificate must carry the name or address that was asked for. Stateless; any
// thread.
#pragma once

#include <string>

#include "client/http/transport.h"
#include "core/result.h"

using SSL_CTX = struct ssl_ctx_st;

namespace holdfast::http {

// `host` is the name or address that the server's certificate must carry. Without a CA the system's
// CAs are trusted. kInvalid says which part is wrong and why, without its content.
Result<> apply_tls(SSL_CTX* context, const TlsConfig& tls, const std::string& host);

// Trusts these PEM certificates beside those that are trusted already. Empty: none.
Result<> trust_too(SSL_CTX* context, const std::string& ca);

// Ok if apply_tls() would accept it: certificates parse, and the key fits its certificate.
Result<> validate_tls(const TlsConfig& tls);

}  // namespace holdfast::http
