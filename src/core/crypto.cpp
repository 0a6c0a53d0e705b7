// OpenSSL's digests as plain functions. Algorithms are fetched once and contexts kept, one per thread,
// because both cost more than hashing a small frame. No process may fork after it has used them,
// or both would give the same random bytes: PostgreSQL's postmaster never uses them.
#include "core/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

namespace onerepl {
namespace {

void check(bool good, const char* what) {
    if (!good) throw std::runtime_error(what);
}

struct Free {
    void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    void operator()(EVP_MAC* algorithm) const { EVP_MAC_free(algorithm); }
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

/// One digest algorithm, used again and again.
template <std::size_t Size>
class Digest {
  public:
    explicit Digest(const char* name, const char* properties = nullptr)
        : algorithm_(EVP_MD_fetch(nullptr, name, properties)), context_(EVP_MD_CTX_new()), name_(name) {
        if (!algorithm_) throw std::runtime_error("this system does not provide " + name_);
        check(context_ != nullptr, "could not make a digest context");
    }

    std::array<std::uint8_t, Size> of(ByteView head, ByteView tail = {}) {
        std::array<std::uint8_t, Size> digest;
        bool good = EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr) == 1;
        good = good && EVP_DigestUpdate(context_.get(), head.data(), head.size()) == 1;
        if (!tail.empty()) good = good && EVP_DigestUpdate(context_.get(), tail.data(), tail.size()) == 1;
        good = good && EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1;
        if (!good) throw std::runtime_error("this system could not compute " + name_);
        return digest;
    }

  private:
    std::unique_ptr<EVP_MD, Free> algorithm_;
    std::unique_ptr<EVP_MD_CTX, Free> context_;
    std::string name_;
};

Digest<16>& md5_digest() {
    // Against damage, no security use: so a host that wants approved algorithms by default has it too.
    thread_local Digest<16> digest("MD5", "-fips");
    return digest;
}

/// HMAC-SHA256 with the key of the last time kept: setting one costs more than hashing a small body. Copies
/// of what holds the key are used, since beginning anew with the same key is not possible before
/// OpenSSL 3.0.3.
class Hmac {
  public:
    Hmac() : algorithm_(EVP_MAC_fetch(nullptr, "HMAC", nullptr)) {
        check(algorithm_ != nullptr, "this system does not provide HMAC");
        keyed_.reset(EVP_MAC_CTX_new(algorithm_.get()));
        check(keyed_ != nullptr, "could not make an HMAC context");
    }

    Sha256 of(ByteView secret, ByteView bytes) {
        Sha256 digest;
        std::size_t size = 0;
        set_key(secret);
        const std::unique_ptr<EVP_MAC_CTX, Free> context(EVP_MAC_CTX_dup(keyed_.get()));
        bool good = context != nullptr;
        good = good && EVP_MAC_update(context.get(), bytes.data(), bytes.size()) == 1;
        good = good && EVP_MAC_final(context.get(), digest.data(), &size, digest.size()) == 1;
        check(good && size == digest.size(), "this system could not compute HMAC-SHA256");
        return digest;
    }

  private:
    void set_key(ByteView secret) {
        if (secret_ && std::ranges::equal(secret, *secret_)) return;
        secret_.reset();
        char digest_name[] = "SHA256";
        const OSSL_PARAM parameters[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest_name, 0),
            OSSL_PARAM_construct_end()};
        // A null key would mean the one of the last time.
        const std::uint8_t no_byte = 0;
        const std::uint8_t* key = secret.empty() ? &no_byte : secret.data();
        check(EVP_MAC_init(keyed_.get(), key, secret.size(), parameters) == 1,
              "this system could not set the key of HMAC-SHA256");
        secret_.emplace(secret.begin(), secret.end());
    }

    std::unique_ptr<EVP_MAC, Free> algorithm_;
    std::unique_ptr<EVP_MAC_CTX, Free> keyed_;
    std::optional<Bytes> secret_;  // of `keyed_`
};

void ask_for_random(std::span<std::uint8_t> out) {
    while (!out.empty()) {
        const std::size_t step = std::min<std::size_t>(out.size(), std::numeric_limits<int>::max());
        check(RAND_bytes(out.data(), static_cast<int>(step)) == 1, "this system has no random bytes");
        out = out.subspan(step);
    }
}

/// Nonces and the like are small and many, and asking costs more than making them: so for many at once. Each
/// byte is given once, and leaves the store with that.
class RandomStore {
  public:
    static constexpr std::size_t size = 1024;
    void take(std::span<std::uint8_t> out) {
        if (left_ < out.size()) {
            left_ = 0;
            ask_for_random(bytes_);
            left_ = size;
        }
        left_ -= out.size();
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(left_), out.size(), out.begin());
        OPENSSL_cleanse(bytes_.data() + left_, out.size());
    }

  private:
    std::array<std::uint8_t, size> bytes_{};
    std::size_t left_ = 0;
};

}  // namespace

Md5 md5(ByteView bytes) {
    return md5_digest().of(bytes);
}

Md5 md5(ByteView head, ByteView tail) {
    return md5_digest().of(head, tail);
}

Sha256 sha256(ByteView bytes) {
    thread_local Digest<32> digest("SHA256");
    return digest.of(bytes);
}

Sha256 hmac_sha256(ByteView secret, ByteView bytes) {
    thread_local Hmac hmac;
    return hmac.of(secret, bytes);
}

bool equal_in_constant_time(ByteView a, ByteView b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_random(std::span<std::uint8_t> out) {
    if (out.size() > RandomStore::size / 4) return ask_for_random(out);
    thread_local RandomStore store;
    store.take(out);
}

}  // namespace onerepl
