// P9: the chain of identities.
#include "core/history.h"

#include "core/bytes.h"
#include "core/crypto.h"

namespace onerepl {

Identity identity_at(const Batch& batch, Number n) {
    if (n + 1 == batch.numbers.first) return batch.before;
    Bytes content;
    ByteWriter writer(content);
    writer.bytes(batch.before);
    writer.bytes(batch.random);
    writer.u64(n);
    const Sha256 digest = sha256(content);
    Identity identity;
    std::copy_n(digest.begin(), identity.size(), identity.begin());
    return identity;
}

}  // namespace onerepl
