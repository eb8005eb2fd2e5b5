#include "client/kube/base64.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace holdfast::kube {
namespace {

TEST(Base64, TheVectorsOfRfc4648) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), std::optional<std::string>(bytes));
  }
}

TEST(Base64, WhatIsEncodedIsDecodedAgain) {
  SeededRandom random(7);
  for (int length = 0; length < 200; ++length) {
    std::string bytes;
    for (int i = 0; i < length; ++i) bytes += static_cast<char>(random.below(256));
    EXPECT_EQ(base64_decode(base64_encode(bytes)), std::optional<std::string>(bytes));
  }
}

TEST(Base64, FoldedTextIsRead) {
  EXPECT_EQ(base64_decode(" Zm9v\r\n\tYmFy\n"), std::optional<std::string>("foobar"));
}

TEST(Base64, WhatIsNoBase64IsRefused) {
  for (const char* const text :
       {"Z", "Zg", "Zg=", "Zg===", "Zm9v=", "====", "Zm=8", "Zm9v!", "Zg==Zg==", "Zm9-", "Zm9_"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace holdfast::kube
