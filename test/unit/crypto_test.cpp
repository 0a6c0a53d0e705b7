// Digests against the examples of their standards.
#include "core/crypto.h"

#include <gtest/gtest.h>

namespace onerepl {
namespace {

TEST(Crypto, Md5OfRfc1321) {
    EXPECT_EQ(to_hex(md5({})), "d41d8cd98f00b204e9800998ecf8427e");
    EXPECT_EQ(to_hex(md5(view("message digest"))), "f96b697d7cb7938d525a2f31aaf161d0");
    EXPECT_EQ(md5(view("message "), view("digest")), md5(view("message digest")));
}

TEST(Crypto, Sha256OfFips180) {
    EXPECT_EQ(to_hex(sha256(view("abc"))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Crypto, HmacOfRfc4231) {
    EXPECT_EQ(to_hex(hmac_sha256(view("Jefe"), view("what do ya want for nothing?"))),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    // A key longer than the block.
    const Bytes long_key(131, 0xaa);
    EXPECT_EQ(to_hex(hmac_sha256(long_key, view("Test Using Larger Than Block-Size Key - Hash Key First"))),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Crypto, AnEmptySecretIsNotTheOneBefore) {
    const Sha256 empty = hmac_sha256({}, view("x"));
    hmac_sha256(view("secret"), view("x"));
    EXPECT_EQ(hmac_sha256({}, view("x")), empty);
    EXPECT_NE(hmac_sha256(view("secret"), view("x")), empty);
}

TEST(Crypto, TheKeyOfTheLastTimeGivesTheSameAgain) {
    const Sha256 once = hmac_sha256(view("secret"), view("x"));
    EXPECT_EQ(hmac_sha256(view("secret"), view("x")), once);
    EXPECT_NE(hmac_sha256(view("secret"), view("y")), once);
    EXPECT_NE(hmac_sha256(view("another"), view("x")), once);
    EXPECT_EQ(hmac_sha256(view("secret"), view("x")), once);
}

TEST(Crypto, ComparesLengthAndContent) {
    EXPECT_TRUE(equal_in_constant_time(view("same"), view("same")));
    EXPECT_FALSE(equal_in_constant_time(view("same"), view("sane")));
    EXPECT_FALSE(equal_in_constant_time(view("same"), view("sam")));
}

TEST(Crypto, RandomnessDiffers) {
    EXPECT_NE(random_array<Nonce>(), random_array<Nonce>());
}

}  // namespace
}  // namespace onerepl
