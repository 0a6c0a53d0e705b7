// The result of a set-returning function that shows records of a log.
#pragma once

#include "functions/record_text.h"
#include "pg/error_boundary.h"

extern "C" {
#include "datatype/timestamp.h"
#include "nodes/execnodes.h"
}

namespace onerepl {

/// Columns of every such function: n int8, relation text, object_id text, moved_to text, operation text,
/// last_of_transaction bool, made_at timestamptz.
class RecordOutput {
  public:
    /// Made before SPI is connected.
    explicit RecordOutput(FunctionCallInfo fcinfo);

    struct Place {
        Number n = 0;
        bool last_of_transaction = false;
        std::optional<TimestampTz> made_at;
    };
    void put(const Place& place, const RecordText& text);

  private:
    ReturnSetInfo* result_;
};

}  // namespace onerepl
