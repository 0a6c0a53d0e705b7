// Reading and writing of big-endian integers and byte strings, as everything on the wire is written.
#pragma once

#include "core/types.h"

#include <algorithm>

namespace onerepl {

/// `value` as it travels.
template <class Integer>
constexpr std::array<std::uint8_t, sizeof(Integer)> big_endian(Integer value) {
    std::array<std::uint8_t, sizeof(Integer)> bytes{};
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
        bytes[i] = static_cast<std::uint8_t>(value >> (8 * (sizeof(Integer) - 1 - i)));
    return bytes;
}

/// Appends to a byte string that the caller owns.
class ByteWriter {
  public:
    explicit ByteWriter(Bytes& out) : out_(out) {}

    void u8(std::uint8_t value) { out_.push_back(value); }
    void u16(std::uint16_t value) { integer(value); }
    void u32(std::uint32_t value) { integer(value); }
    void u64(std::uint64_t value) { integer(value); }
    void bytes(ByteView value) {
        // Not insert(): inlined, gcc 12 warns of an overflow in it that cannot happen.
        const std::size_t at = out_.size();
        out_.resize(at + value.size());
        std::copy(value.begin(), value.end(), out_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    /// u32 length, then the bytes.
    void counted(ByteView value) {
        u32(static_cast<std::uint32_t>(value.size()));
        bytes(value);
    }
    std::size_t position() const { return out_.size(); }

  private:
    template <class Integer>
    void integer(Integer value) {
        bytes(big_endian(value));
    }
    Bytes& out_;
};

/// Reads from bytes of somebody else. After the first read past the end every read gives zero and `ok()` is
/// false, so that a decoder checks once at its end (P14).
class ByteReader {
  public:
    explicit ByteReader(ByteView in) : in_(in) {}

    std::uint8_t u8() { return static_cast<std::uint8_t>(integer(1)); }
    std::uint16_t u16() { return static_cast<std::uint16_t>(integer(2)); }
    std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
    std::uint64_t u64() { return integer(8); }
    ByteView bytes(std::size_t count) {
        if (count > in_.size()) return fail(), ByteView{};
        ByteView taken = in_.first(count);
        in_ = in_.subspan(count);
        return taken;
    }
    ByteView counted() { return bytes(u32()); }
    template <std::size_t Size>
    void array(std::array<std::uint8_t, Size>& out) {
        ByteView taken = bytes(Size);
        if (taken.size() == Size) std::copy(taken.begin(), taken.end(), out.begin());
    }
    void fail() {
        ok_ = false;
        in_ = {};
    }
    bool ok() const { return ok_; }
    std::size_t left() const { return in_.size(); }

  private:
    std::uint64_t integer(std::size_t size) {
        std::uint64_t value = 0;
        for (std::uint8_t byte : bytes(size)) value = value << 8 | byte;
        return value;
    }
    ByteView in_;
    bool ok_ = true;
};

}  // namespace onerepl
