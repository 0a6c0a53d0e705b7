// Who has records in the sender's numbering steps: the sequences, and the refreshes after them.
#pragma once

#include "refresh/chunk_maker.h"
#include "sender/sequence_taker.h"

namespace onerepl::sender {

class NumberingGuests : public log::NumberingGuest {
  public:
    bool is_expected() const override { return chunks_.is_expected(); }
    bool begin() override { return chunks_.begin(); }
    std::vector<log::NumberedTransaction> before(Number first, bool changes) override;
    std::vector<log::NumberedTransaction> after(Number first) override { return chunks_.after(first); }
    void committed() override { sequences_.committed(); }
    void rolled_back() override { chunks_.rolled_back(); }
    void failed(const pg::ErrorReport& report) override;

    const refresh::ChunkMaker& chunks() const { return chunks_; }
    refresh::ChunkMaker& chunks() { return chunks_; }
    /// There is a central that has not heard of them.
    void report_sequences_again() { sequences_.forget(); }

  private:
    SequenceTaker sequences_;
    refresh::ChunkMaker chunks_;
    bool taking_ = false;  // the sequences' turn
};

}  // namespace onerepl::sender
