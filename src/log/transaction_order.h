// The order of a transaction whose records were logged out of order (P4): which pack holds its i-th record.
#pragma once

#include "core/order.h"
#include "log/encoder.h"
#include "log/pack_scan.h"

namespace onerepl::log {

/// Made in one pass over the transaction's packs. It is ordered piece by piece: a piece ends between two
/// packs where every command before is older than every command after, so that nothing crosses. A piece is as
/// large as the largest statement with triggers that change rows; only one is kept in memory.
class TransactionOrder {
  public:
    TransactionOrder(LogTables& tables, const NumberedTransaction& transaction);

    struct Place {
        std::size_t pack = 0;
        std::uint32_t record = 0;  // in the pack
    };
    /// Where the record at `position` (from 0) in the transaction is.
    Place at(std::uint64_t position, LogTables& tables, Layouts& layouts);

    std::uint64_t xid() const { return transaction_.xid; }
    /// Records found; 0 if the packs are gone.
    std::uint64_t size() const { return size_; }
    std::int32_t seq(std::size_t pack) const { return packs_[pack].seq; }

  private:
    struct PackSummary {
        std::int32_t seq = 0;
        std::uint64_t first = 0;  // position of its first record in log order
        std::uint32_t lowest_command = UINT32_MAX;
        std::uint32_t highest_command = 0;
    };
    struct Piece {
        std::size_t first_pack = 0;
        std::size_t end_pack = 0;
        std::uint64_t first = 0;
        std::uint64_t end = 0;
    };

    void summarize(LogTables& tables);
    void find_pieces();
    void order_piece(const Piece& piece, LogTables& tables, Layouts& layouts);

    NumberedTransaction transaction_;
    std::uint64_t size_ = 0;
    std::vector<PackSummary> packs_;
    std::vector<Piece> pieces_;
    std::size_t ordered_piece_ = SIZE_MAX;
    std::vector<std::uint32_t> order_;  // of that piece
};

}  // namespace onerepl::log
