// How the simulated sender fills a body: repetitions first, then new transfers, until the budget is used.
#include "remote_node.h"

#include <algorithm>

namespace onerepl::sim {

namespace {

class Former {
  public:
    Former(const RemoteStore& store, const Outgoing& outgoing, const RemoteHeader& header,
           std::uint64_t part_bytes)
        : store_(store), outgoing_(outgoing), part_bytes_(part_bytes), packet_(std::make_shared<Packet>()) {
        header_ = header;
    }

    Formed form() {
        for (const Missing& repeat : outgoing_.repeats)
            if (!add(repeat)) return finish();
        add(outgoing_.transfers);
        return finish();
    }

  private:
    /// False when the body is full.
    bool add(const Missing& wanted) {
        for (Number n = wanted.numbers.first; n <= wanted.numbers.last;) {
            const Change& change = store_.history.change(n);
            if (change.skip) {
                const Number count = skips(n, wanted.numbers.last);
                if (!put(n, count, bytes_of_skip(count), 0, 1)) return false;
                carried_.whole.push_back({n, n + count - 1});
                n += count;
                continue;
            }
            const Bytes bytes = bytes_of(change);
            if (bytes.size() <= part_bytes_) {
                if (!put(n, 1, bytes, 0, 1)) return false;
                if (!carried_.whole.empty() && carried_.whole.back().last + 1 == n) {
                    carried_.whole.back().last = n;
                } else {
                    carried_.whole.push_back({n, n});
                }
            } else if (!add_parts(n, bytes, wanted)) {
                return false;
            }
            ++n;
        }
        return true;
    }

    bool add_parts(Number n, const Bytes& bytes, const Missing& wanted) {
        const auto parts = static_cast<std::uint32_t>((bytes.size() + part_bytes_ - 1) / part_bytes_);
        const std::uint32_t first = n == wanted.numbers.first ? wanted.first_part : 0;
        const std::uint32_t last =
            std::min(parts - 1, wanted.numbers.size() == 1 ? wanted.last_part : parts - 1);
        for (std::uint32_t part = first; part <= last; ++part) {
            const std::size_t from = part * part_bytes_;
            const std::size_t to = std::min<std::size_t>(bytes.size(), from + part_bytes_);
            const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                              bytes.begin() + static_cast<std::ptrdiff_t>(to));
            if (!put(n, 1, piece, part, parts)) return false;
            if (part == first) carried_.parts.push_back({n, first, first, parts});
            carried_.parts.back().last_part = part;
        }
        return true;
    }

    Number skips(Number n, Number last) const {
        Number count = 0;
        while (n + count <= last && store_.history.change(n + count).skip) ++count;
        return count;
    }

    bool put(Number n, Number count, Bytes bytes, std::uint32_t part, std::uint32_t parts) {
        if (carried_.bytes > 0 && carried_.bytes + bytes.size() > outgoing_.budget) return false;
        carried_.bytes += bytes.size();
        packet_->storage.push_back(std::move(bytes));
        // A skip range ends a transaction if one ends anywhere in it: what is skipped after that changes
        // nothing.
        const bool end = store_.history.transaction_end(n) <= n + count - 1 &&
                         store_.history.change(store_.history.transaction_end(n)).end;
        packet_->messages.push_back(ObjectTransfer{n, end, part, parts, packet_->storage.back()});
        for (const Batch& batch : store_.history.batches_of({n, n + count - 1}))
            batches_[batch.numbers.first] = batch;
        return true;
    }

    Formed finish() {
        if (!outgoing_.confirmation_request.empty())
            packet_->messages.push_back(ConfirmationRequest{outgoing_.confirmation_request});
        if (outgoing_.remote_state) packet_->messages.push_back(RemoteState{*outgoing_.remote_state});
        for (std::uint64_t id : outgoing_.descriptions) {
            packet_->storage.push_back(Bytes{static_cast<std::uint8_t>(id)});
            packet_->messages.push_back(Description{packet_->storage.back()});
        }
        if (const Number n = outgoing_.witness; n != 0)
            for (const Batch& batch : store_.history.batches_of({n, n}))
                batches_[batch.numbers.first] = batch;
        for (const auto& [first, batch] : batches_) header_.batches.push_back(batch);
        packet_->header = header_;
        return {packet_, carried_};
    }

    const RemoteStore& store_;
    const Outgoing& outgoing_;
    std::uint64_t part_bytes_;
    RemoteHeader header_;
    std::shared_ptr<Packet> packet_;
    Carried carried_;
    std::map<Number, Batch> batches_;
};

}  // namespace

Formed form(const RemoteStore& store, const Outgoing& outgoing, const RemoteHeader& header,
            std::uint64_t part_bytes) {
    return Former(store, outgoing, header, part_bytes).form();
}

}  // namespace onerepl::sim
