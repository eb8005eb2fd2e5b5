// TlsConfig put into an OpenSSL context: exactly the cluster's CA is trusted, TLS 1.2 is the floor,
// and the certificate must carry the name or address that was asked for. Stateless; any thread.
#pragma once

#include <string>

#include "client/http/transport.h"
#include "core/result.h"

using SSL_CTX = struct ssl_ctx_st;

namespace holdfast::http {

// `host` is the name or the address that the server's certificate must carry. Without a CA the
// system's are trusted. kInvalid says what is wrong with which part, without showing any of it.
Status apply_tls(SSL_CTX* context, const TlsConfig& tls, const std::string& host);

// Whether apply_tls() would take it: certificates parse, and the key fits its certificate.
Status validate_tls(const TlsConfig& tls);

}  // namespace holdfast::http
