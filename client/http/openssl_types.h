// Owning pointers for OpenSSL's objects.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace holdfast::http::openssl {

template <auto free_function>
struct Free {
  template <class T>
  void operator()(T* pointer) const {
    free_function(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;
using Store = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;

// Reads `text`, which must outlive it.
inline Bio reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Collects what is written to it, for text_of().
inline Bio writer() { return Bio(BIO_new(BIO_s_mem())); }

inline std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

}  // namespace holdfast::http::openssl
