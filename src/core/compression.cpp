// zstd with contexts that are kept, one per thread, because making one costs more than compressing a small
// body.
#include "core/compression.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

namespace onerepl {
namespace {

/// Fewer bytes are not worth the time.
constexpr std::size_t smallest = 256;

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_CCtx* compressor() {
    thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
    if (!context) throw std::bad_alloc();
    return context.get();
}

ZSTD_DCtx* decompressor() {
    thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
    if (!context) throw std::bad_alloc();
    // Decompression in one step needs no window beside its output; the limit holds should it ever become a
    // stream.
    ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 23);
    return context.get();
}

}  // namespace

std::optional<Bytes> compress(ByteView in, int level) {
    if (level == 0 || in.size() < smallest) return std::nullopt;
    Bytes out(ZSTD_compressBound(in.size()));
    const std::size_t size =
        ZSTD_compressCCtx(compressor(), out.data(), out.size(), in.data(), in.size(), std::min(level, 19));
    if (ZSTD_isError(size) || size >= in.size()) return std::nullopt;
    out.resize(size);
    return out;
}

std::optional<Bytes> decompress(ByteView in, std::size_t limit, DecompressError& error) {
    error = DecompressError::malformed;
    const unsigned long long announced = ZSTD_getFrameContentSize(in.data(), in.size());
    if (announced == ZSTD_CONTENTSIZE_UNKNOWN || announced == ZSTD_CONTENTSIZE_ERROR || announced == 0)
        return std::nullopt;
    if (announced > limit) {
        error = DecompressError::too_large;
        return std::nullopt;
    }
    // Exactly one frame: what the size announces is all that there is.
    if (ZSTD_findFrameCompressedSize(in.data(), in.size()) != in.size()) return std::nullopt;
    Bytes out(static_cast<std::size_t>(announced));
    if (ZSTD_decompressDCtx(decompressor(), out.data(), out.size(), in.data(), in.size()) != out.size())
        return std::nullopt;
    return out;
}

}  // namespace onerepl
