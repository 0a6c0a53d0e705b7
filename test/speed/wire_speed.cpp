// How fast messages are written and read: prints nanoseconds per call, the best of several rounds, since
// another program on the machine can only make it slower.
#include "core/body.h"
#include "core/crypto.h"
#include "core/record.h"

#include <chrono>
#include <cstdio>

namespace {

using namespace onerepl;

constexpr int rounds = 7;

/// The fastest round of `work`, which does `count` things, in nanoseconds a thing.
template <class Work>
double fastest(std::size_t count, Work work) {
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
        const double each = taken.count() / static_cast<double>(count);
        if (round == 0 || each < best) best = each;
    }
    return best;
}

/// Four text columns, 100 bytes in all.
Bytes small_record() {
    const Bytes text(17, 'x');
    Record record{.operation = Operation::insert, .description = 7};
    record.row.assign(4, Value{ValueKind::text, text});
    Bytes bytes;
    encode_record(record, bytes);
    return bytes;
}

void measure_frames(const Parties& parties, ByteView record) {
    constexpr std::size_t count = 50'000;
    Bytes frames;
    const double encode = fastest(count, [&] {
        frames.clear();
        for (Number n = 1; n <= count; ++n)
            encode_frame(parties, ObjectTransfer{.n = n, .last_of_transaction = true, .record = record},
                         frames);
    });
    std::size_t good = 0;
    const double decode = fastest(count, [&] {
        for (FrameReader reader(parties, frames); !reader.at_end();)
            good += reader.next().value.index() == 0 ? 1 : 0;
    });
    if (good != count * rounds) std::puts("frames were lost");
    std::printf("frame of a %zu-byte record: encode %.0f ns, decode %.0f ns\n", record.size(), encode,
                decode);
}

void measure_records(ByteView bytes) {
    constexpr std::size_t count = 200'000;
    Record record;
    std::size_t good = 0;
    const double decode = fastest(count, [&] {
        for (std::size_t i = 0; i < count; ++i) good += decode_record(bytes, record) ? 1 : 0;
    });
    Bytes again;
    const double encode = fastest(count, [&] {
        for (std::size_t i = 0; i < count; ++i) {
            again.clear();
            encode_record(record, again);
        }
    });
    if (good != count * rounds) std::puts("records were lost");
    std::printf("record of %zu bytes: encode %.0f ns, decode %.0f ns\n", bytes.size(), encode, decode);
}

void measure_bodies(const Parties& parties, ByteView record) {
    const Bytes secret(32, 's');
    Body body{.parties = parties, .header = RemoteHeader{}};
    while (body.frames.size() < 1'000'000)
        encode_frame(parties, ObjectTransfer{.n = body.frames.size() + 1, .record = record}, body.frames);
    for (int level : {0, 1, 3}) {
        Bytes bytes;
        const double encode = fastest(1, [&] { bytes = encode_body(body, secret, {.compression = level}); });
        bool good = true;
        const double decode =
            fastest(1, [&] { good = good && decode_body(bytes, secret, 1 << 21).index() == 0; });
        if (!good) std::puts("bodies were lost");
        std::printf("body of 1 MB of frames, level %d, %zu bytes: encode %.2f ms, decode %.2f ms\n", level,
                    bytes.size(), encode / 1e6, decode / 1e6);
    }
}

}  // namespace

int main() {
    Parties parties;
    fill_random(parties.remote);
    fill_random(parties.central);
    const Bytes record = small_record();
    measure_frames(parties, record);
    measure_records(record);
    measure_bodies(parties, record);
}
