#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/crc.hpp>

#include "tests/unit/http/transport_fixture.h"

namespace holdfast::http {
namespace {

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((value >> shift) & 0xff);
  return bytes;
}

std::string gzip(const std::string& text) {
  namespace zlib = boost::beast::zlib;
  zlib::deflate_stream deflate;
  std::string out(deflate.upper_bound(text.size()) + 64, '\0');
  zlib::z_params stream;
  stream.next_in = text.data();
  stream.avail_in = text.size();
  stream.next_out = out.data();
  stream.avail_out = out.size();
  boost::system::error_code error;
  deflate.write(stream, zlib::Flush::finish, error);
  out.resize(stream.total_out);
  boost::crc_32_type crc;
  crc.process_bytes(text.data(), text.size());
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + out + little_endian(crc.checksum()) +
         little_endian(static_cast<std::uint32_t>(text.size()));
}

// Like a list of pods: repetitive, with some noise.
std::string list_text(std::size_t size) {
  std::string text;
  std::uint32_t noise = 1;
  while (text.size() < size) {
    noise = noise * 1664525 + 1013904223;
    text += R"({"metadata":{"name":"pod-)" + std::to_string(noise) + R"(","namespace":"media"}},)";
  }
  return text;
}

class GzipTest : public TransportTest {
 protected:
  Result<Response> ask() {
    Request request = get_request("/list");
    request.accept_gzip = true;
    return send(std::move(request));
  }
};

TEST_F(GzipTest, ListsOfAllSizesArriveWholeHoweverTheyAreCut) {
  for (const std::size_t size : {1, 1'000, 200'000, 5'000'000}) {
    const std::string text = list_text(size);
    const std::string packed = gzip(text);
    for (const std::size_t piece : {packed.size(), std::size_t{32'768}, std::size_t{1000}}) {
      server_.handle([&](TlsServer::Exchange& exchange) {
        exchange.begin_chunked(200, "Content-Encoding: gzip\r\n");
        for (std::size_t i = 0; i < packed.size(); i += piece) {
          exchange.chunk(packed.substr(i, piece));
        }
        exchange.end_chunked();
      });
      const auto response = ask();
      ASSERT_TRUE(response.ok()) << response.error().message;
      EXPECT_TRUE(response->body == text) << size << " in pieces of " << piece;
    }
    server_.handle([&](TlsServer::Exchange& exchange) {
      exchange.respond(200, packed, "Content-Encoding: gzip\r\n");
    });
    const auto response = ask();
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_TRUE(response->body == text) << size << " with Content-Length";
  }
}

TEST_F(GzipTest, ABombIsCutOffAtTheLimit) {
  const std::string packed = gzip(std::string(8'000'000, 'x'));
  ASSERT_LT(packed.size(), 1'000'000u);
  server_.handle([&](TlsServer::Exchange& exchange) {
    exchange.respond(200, packed, "Content-Encoding: gzip\r\n");
  });
  Request request = get_request("/list");
  request.accept_gzip = true;
  request.max_response_bytes = 1'000'000;
  const auto response = send(std::move(request));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTerminal);
}

TEST_F(GzipTest, DamagedDataIsAnError) {
  std::string packed = gzip(list_text(100'000));
  packed.replace(packed.size() / 2, 50, 50, '\xff');
  server_.handle([&](TlsServer::Exchange& exchange) {
    exchange.respond(200, packed, "Content-Encoding: gzip\r\n");
  });
  const auto response = ask();
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
}

}  // namespace
}  // namespace holdfast::http
