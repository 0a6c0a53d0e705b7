// Checksums, authentication and randomness, from OpenSSL's libcrypto.
#pragma once

#include "core/types.h"

namespace onerepl {

using Md5 = std::array<std::uint8_t, 16>;
using Sha256 = std::array<std::uint8_t, 32>;

/// The frame's checksum, also where approved algorithms are the default (fips=yes). Throws std::runtime_error
/// if the system has no MD5 at all.
Md5 md5(ByteView bytes);
/// Of the two byte strings, one after the other.
Md5 md5(ByteView head, ByteView tail);
Sha256 sha256(ByteView bytes);
/// RFC 2104 over SHA-256.
Sha256 hmac_sha256(ByteView secret, ByteView bytes);
/// Takes the same time wherever the first difference is.
bool equal_in_constant_time(ByteView a, ByteView b);
/// Cryptographically strong random bytes; throws std::runtime_error if the system has none.
void fill_random(std::span<std::uint8_t> out);

template <class Array>
Array random_array() {
    Array value;
    fill_random(value);
    return value;
}

}  // namespace onerepl
