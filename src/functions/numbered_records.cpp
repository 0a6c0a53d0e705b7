// The remote's log as the administrator reads it: record by record, and the newest record of one object.
#include "functions/arguments.h"
#include "functions/record_output.h"
#include "log/numbering.h"
#include "log/reader.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"

extern "C" {
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(onerepl_numbered_records);
PG_FUNCTION_INFO_V1(onerepl_newest_record);
}

#include <algorithm>
#include <vector>

namespace onerepl {

namespace {

/// When batches were numbered, for many numbers.
class BatchTimes {
  public:
    explicit BatchTimes(Range numbers) {
        pg::query("SELECT first, made_at FROM onerepl.batch WHERE last >= $1 AND first <= $2 ORDER BY first",
                  {numbers.first, numbers.last}, [&](const pg::Row& row) {
                      bool null = true;
                      times_.push_back({row.number(0), DatumGetTimestampTz(row.datum(1, &null))});
                  });
    }
    std::optional<TimestampTz> at(Number n) const {
        const auto after =
            std::upper_bound(times_.begin(), times_.end(), n,
                             [](Number number, const Time& time) { return number < time.first; });
        if (after == times_.begin()) return std::nullopt;
        return std::prev(after)->made_at;
    }

  private:
    struct Time {
        Number first;
        TimestampTz made_at;
    };
    std::vector<Time> times_;
};

Range whole_log() {
    return {log::first_number(), log::last_number()};
}

/// The argument's number, or `otherwise` if it is null or less than 1.
Number number_argument(FunctionCallInfo fcinfo, int argument, Number otherwise) {
    if (PG_ARGISNULL(argument) || PG_GETARG_INT64(argument) < 1) return otherwise;
    return static_cast<Number>(PG_GETARG_INT64(argument));
}

RecordText text_of(const log::LogEntry& entry, Descriptions& descriptions) {
    const std::optional<Record> record = decode_record(entry.record);
    return record ? onerepl::text_of(*record, descriptions.find(entry.description)) : RecordText{};
}

void numbered_records(FunctionCallInfo fcinfo) {
    RecordOutput output(fcinfo);
    pg::SpiConnection spi;
    const Range log = whole_log();
    const Range wanted =
        intersection({number_argument(fcinfo, 0, log.first), number_argument(fcinfo, 1, log.last)}, log);
    if (!wanted.empty()) {
        const BatchTimes times(wanted);
        Descriptions descriptions(log::description);
        log::Reader().read(wanted.first, wanted.last, [&](const log::LogEntry& entry) {
            output.put({entry.n, entry.last_of_transaction, times.at(entry.n)}, text_of(entry, descriptions));
            return true;
        });
    }
    spi.finish();
}

struct Object {
    std::string relation;
    std::string id;
};

bool is_about(const log::LogEntry& entry, const Object& object, Descriptions& descriptions) {
    if (entry.operation != Operation::insert && entry.operation != Operation::update &&
        entry.operation != Operation::remove)
        return false;
    const TableDescription* const table = descriptions.find(entry.description);
    if (table == nullptr || qualified_name(*table) != object.relation) return false;
    const RecordText text = text_of(entry, descriptions);
    return text.object_id == object.id || text.moved_to == object.id;
}

/// 0: none. From the end backwards in pieces, because what is asked for is mostly young.
Number newest_record(const Object& object) {
    constexpr Number piece = 10000;
    const Range log = whole_log();
    Descriptions descriptions(log::description);
    Number newest = 0;
    for (Number last = log.last; newest == 0 && last >= log.first && last > 0;
         last -= std::min(last, piece)) {
        const Number first = std::max(log.first, last > piece ? last - piece + 1 : 1);
        log::Reader().read(first, last, [&](const log::LogEntry& entry) {
            if (is_about(entry, object, descriptions)) newest = entry.n;
            return true;
        });
    }
    return newest;
}

Number newest_record(FunctionCallInfo fcinfo) {
    const Object object{text_argument(fcinfo, 0), text_argument(fcinfo, 1)};
    pg::SpiConnection spi;
    const Number newest = newest_record(object);
    spi.finish();
    return newest;
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_numbered_records(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::numbered_records(fcinfo); });
    return static_cast<Datum>(0);
}

PGDLLEXPORT Datum onerepl_newest_record(PG_FUNCTION_ARGS) {
    const onerepl::Number newest = onerepl::pg::entry([&] { return onerepl::newest_record(fcinfo); });
    if (newest == 0) PG_RETURN_NULL();
    PG_RETURN_INT64(static_cast<int64>(newest));
}
