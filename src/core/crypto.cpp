// OpenSSL's digests behind plain functions. Algorithms are fetched once and contexts kept, one per thread,
// because both cost more than hashing a small frame.
#include "core/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <limits>
#include <memory>
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
    explicit Digest(const char* name)
        : algorithm_(EVP_MD_fetch(nullptr, name, nullptr)), context_(EVP_MD_CTX_new()), name_(name) {
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
    thread_local Digest<16> digest("MD5");
    return digest;
}

EVP_MAC_CTX* hmac_context() {
    thread_local const std::unique_ptr<EVP_MAC, Free> algorithm(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    check(algorithm != nullptr, "this system does not provide HMAC");
    thread_local const std::unique_ptr<EVP_MAC_CTX, Free> context(EVP_MAC_CTX_new(algorithm.get()));
    check(context != nullptr, "could not make an HMAC context");
    return context.get();
}

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
    char digest_name[] = "SHA256";
    const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest_name, 0),
                                     OSSL_PARAM_construct_end()};
    // A null key would mean "the one of the last time".
    const std::uint8_t no_byte = 0;
    const std::uint8_t* key = secret.empty() ? &no_byte : secret.data();
    EVP_MAC_CTX* context = hmac_context();
    Sha256 digest;
    std::size_t size = 0;
    bool good = EVP_MAC_init(context, key, secret.size(), parameters) == 1;
    good = good && EVP_MAC_update(context, bytes.data(), bytes.size()) == 1;
    good = good && EVP_MAC_final(context, digest.data(), &size, digest.size()) == 1;
    check(good && size == digest.size(), "this system could not compute HMAC-SHA256");
    return digest;
}

bool equal_in_constant_time(ByteView a, ByteView b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_random(std::span<std::uint8_t> out) {
    while (!out.empty()) {
        const std::size_t step = std::min<std::size_t>(out.size(), std::numeric_limits<int>::max());
        check(RAND_bytes(out.data(), static_cast<int>(step)) == 1, "this system has no random bytes");
        out = out.subspan(step);
    }
}

}  // namespace onerepl
