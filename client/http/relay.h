// Carries bytes between two open streams in both directions until either ends. Then both are
// closed. One thread of their io_context.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace holdfast::http {

template <class Left, class Right>
class Relay {
 public:
  // `close` closes both; then every operation in progress ends. It may run twice.
  Relay(Left& left, Right& right, std::function<void()> close)
      : left_(left), right_(right), close_(std::move(close)) {}
  // `owner` keeps the streams and this alive as long as an operation is in progress.
  void begin(const std::shared_ptr<void>& owner) {
    pump(left_, right_, there_, owner);
    pump(right_, left_, back_, owner);
  }

 private:
  static constexpr std::size_t kPiece = 16 * 1024;
  using Piece = std::array<char, kPiece>;

  template <class From, class To>
  void pump(From& from, To& to, Piece& piece, std::shared_ptr<void> owner) {
    from.async_read_some(
        boost::asio::buffer(piece), [this, &from, &to, &piece, owner = std::move(owner)](
                                        boost::system::error_code error, std::size_t size) mutable {
          if (error) return close_();
          boost::asio::async_write(to, boost::asio::buffer(piece.data(), size),
                                   [this, &from, &to, &piece, owner = std::move(owner)](
                                       boost::system::error_code failed, std::size_t) mutable {
                                     if (failed) return close_();
                                     pump(from, to, piece, std::move(owner));
                                   });
        });
  }

  Left& left_;
  Right& right_;
  const std::function<void()> close_;
  Piece there_{};
  Piece back_{};
};

}  // namespace holdfast::http
