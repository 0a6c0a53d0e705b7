// Records and table descriptions: vectors both ways, and garbage.
#include "core/record.h"

#include "core/bytes.h"
#include "vectors.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace onerepl {
namespace {

// ---------------------------------------------------------------- vectors

/// "b:00000004 n u"; `store` keeps the bytes.
std::vector<Value> values_from(const std::string& text, std::deque<Bytes>& store) {
    std::vector<Value> values;
    for (const std::string& word : test::words(text)) {
        Value value{static_cast<ValueKind>(word[0]), {}};
        if (word.size() > 1) value.bytes = store.emplace_back(test::from_hex(word.substr(2)));
        values.push_back(value);
    }
    return values;
}

std::vector<ByteView> key_from(const std::string& text, std::deque<Bytes>& store) {
    std::vector<ByteView> key;
    for (const std::string& word : test::words(text)) key.push_back(store.emplace_back(test::from_hex(word)));
    return key;
}

Chunk chunk_from(const test::Section& section, std::deque<Bytes>& store) {
    Chunk chunk;
    chunk.refresh = section.number("refresh");
    chunk.opens = section.has("opens");
    chunk.first = section.has("first");
    chunk.last = section.has("last");
    chunk.cancelled = section.has("cancelled");
    chunk.repair = section.has("repair");
    chunk.verify = section.has("verify");
    chunk.partial = section.has("partial");
    if (section.has("order"))
        for (const std::string& word : test::words(section.text("order")))
            chunk.order.push_back(static_cast<KeyOrder>(word.at(0)));
    if (section.has("key_from")) chunk.from = key_from(section.text("key_from"), store);
    if (section.has("key_to")) chunk.to = key_from(section.text("key_to"), store);
    if (!section.has("rows")) return chunk;
    // A row is encoded as in an insert, whose first ten bytes are not the row's.
    Record insert{.operation = Operation::insert, .row = values_from(section.text("rows"), store)};
    Bytes encoded;
    encode_record(insert, encoded);
    chunk.row_count = 1;
    chunk.rows = ByteView(store.emplace_back(encoded)).subspan(10);
    return chunk;
}

Statement statement_from(const test::Section& section, std::deque<Bytes>& store) {
    const auto text = [&](const char* name) {
        const std::string value = section.has(name) ? section.text(name) : "";
        return ByteView(store.emplace_back(value.begin(), value.end()));
    };
    Statement statement;
    statement.captured = section.has("captured");
    statement.dropped = section.has("dropped");
    statement.encoding = text("encoding");
    statement.search_path = text("search_path");
    for (const std::string& line : section.all("setting")) {
        const std::size_t space = line.find(' ');
        const auto part = [&](std::string_view bytes) {
            return ByteView(store.emplace_back(bytes.begin(), bytes.end()));
        };
        statement.settings.push_back(
            {part(std::string_view(line).substr(0, space)), part(std::string_view(line).substr(space + 1))});
    }
    if (section.has("sql")) statement.text = store.emplace_back(section.bytes("sql"));
    return statement;
}

SequenceState sequence_from(const std::string& line, std::deque<Bytes>& store) {
    const auto fields = test::words(line);
    SequenceState sequence;
    sequence.schema = store.emplace_back(fields.at(0).begin(), fields.at(0).end());
    sequence.name = store.emplace_back(fields.at(1).begin(), fields.at(1).end());
    sequence.last_value = std::stoll(fields.at(2));
    sequence.is_called = fields.at(3) == "1";
    return sequence;
}

Record record_from(const test::Section& section, std::deque<Bytes>& store) {
    Record record;
    record.operation = static_cast<Operation>(section.text("operation").at(0));
    if (section.has("description")) record.description = section.number("description");
    if (section.has("old_key")) record.old_key = values_from(section.text("old_key"), store);
    if (section.has("row")) record.row = values_from(section.text("row"), store);
    if (section.has("table")) record.table = store.emplace_back(section.bytes("table"));
    record.too_large = section.has("too_large");
    if (section.has("truncate_cascade")) record.truncate_cascade = section.flag("truncate_cascade");
    if (section.has("truncate_restart_identity"))
        record.truncate_restart_identity = section.flag("truncate_restart_identity");
    if (record.operation == Operation::chunk) record.chunk = chunk_from(section, store);
    if (record.operation == Operation::statement) record.statement = statement_from(section, store);
    if (record.operation == Operation::sequences) {
        record.sequences_complete = section.has("complete");
        const std::string encoding = section.text("encoding");
        record.sequence_encoding = store.emplace_back(encoding.begin(), encoding.end());
        for (const char* name : {"sequence", "sequence_2"})
            if (section.has(name)) record.sequences.push_back(sequence_from(section.text(name), store));
    }
    return record;
}

void expect_same(const std::vector<Value>& a, const std::vector<Value>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].kind, b[i].kind) << i;
        EXPECT_EQ(to_hex(a[i].bytes), to_hex(b[i].bytes)) << i;
    }
}

std::vector<std::string> hexadecimal(const std::vector<ByteView>& key) {
    std::vector<std::string> all;
    for (const ByteView value : key) all.push_back(to_hex(value));
    return all;
}

void expect_same(const Chunk& a, const Chunk& b) {
    EXPECT_EQ(a.refresh, b.refresh);
    EXPECT_EQ(a.opens, b.opens);
    EXPECT_EQ(a.first, b.first);
    EXPECT_EQ(a.last, b.last);
    EXPECT_EQ(a.cancelled, b.cancelled);
    EXPECT_EQ(a.repair, b.repair);
    EXPECT_EQ(a.verify, b.verify);
    EXPECT_EQ(a.partial, b.partial);
    EXPECT_EQ(a.order, b.order);
    EXPECT_EQ(hexadecimal(a.from), hexadecimal(b.from));
    EXPECT_EQ(hexadecimal(a.to), hexadecimal(b.to));
    EXPECT_EQ(a.row_count, b.row_count);
    EXPECT_EQ(to_hex(a.rows), to_hex(b.rows));
}

void expect_same(const Statement& a, const Statement& b) {
    EXPECT_EQ(a.captured, b.captured);
    EXPECT_EQ(a.dropped, b.dropped);
    EXPECT_EQ(to_hex(a.encoding), to_hex(b.encoding));
    EXPECT_EQ(to_hex(a.search_path), to_hex(b.search_path));
    ASSERT_EQ(a.settings.size(), b.settings.size());
    for (std::size_t i = 0; i < a.settings.size(); ++i) {
        EXPECT_EQ(to_hex(a.settings[i].name), to_hex(b.settings[i].name)) << i;
        EXPECT_EQ(to_hex(a.settings[i].value), to_hex(b.settings[i].value)) << i;
    }
    EXPECT_EQ(to_hex(a.text), to_hex(b.text));
}

void expect_same(const std::vector<SequenceState>& a, const std::vector<SequenceState>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(to_hex(a[i].schema), to_hex(b[i].schema)) << i;
        EXPECT_EQ(to_hex(a[i].name), to_hex(b[i].name)) << i;
        EXPECT_EQ(a[i].last_value, b[i].last_value) << i;
        EXPECT_EQ(a[i].is_called, b[i].is_called) << i;
    }
}

void expect_same(const Record& a, const Record& b) {
    EXPECT_EQ(a.operation, b.operation);
    EXPECT_EQ(a.description, b.description);
    ASSERT_EQ(a.old_key.has_value(), b.old_key.has_value());
    if (a.old_key) expect_same(*a.old_key, *b.old_key);
    expect_same(a.row, b.row);
    EXPECT_EQ(to_hex(a.table), to_hex(b.table));
    EXPECT_EQ(a.too_large, b.too_large);
    EXPECT_EQ(a.truncate_cascade, b.truncate_cascade);
    EXPECT_EQ(a.truncate_restart_identity, b.truncate_restart_identity);
    expect_same(a.chunk, b.chunk);
    expect_same(a.statement, b.statement);
    EXPECT_EQ(to_hex(a.sequence_encoding), to_hex(b.sequence_encoding));
    EXPECT_EQ(a.sequences_complete, b.sequences_complete);
    expect_same(a.sequences, b.sequences);
}

TEST(RecordVectors, EncodeAndDecodeBothWays) {
    std::set<Operation> operations;
    Record reused;
    for (const test::Section& section : test::read_vectors("records.txt")) {
        SCOPED_TRACE(section.title);
        std::deque<Bytes> store;
        const Record record = record_from(section, store);
        const Bytes expected = section.bytes("record");
        Bytes encoded;
        encode_record(record, encoded);
        EXPECT_EQ(to_hex(encoded), to_hex(expected));

        const auto decoded = decode_record(expected);
        ASSERT_TRUE(decoded);
        expect_same(*decoded, record);
        // A record that was used for another operation before gives the same.
        ASSERT_TRUE(decode_record(expected, reused));
        expect_same(reused, record);
        operations.insert(record.operation);
    }
    EXPECT_EQ(operations.size(), 9u) << "a vector for each operation";
}

TableDescription description_from(const test::Section& section) {
    TableDescription table;
    table.id = section.number("id");
    table.schema = section.text("schema");
    table.name = section.text("name");
    table.encoding = section.text("encoding");
    if (section.has("partition_name")) {
        table.partition_schema = section.text("partition_schema");
        table.partition_name = section.text("partition_name");
        table.partition_condition = section.text("partition_condition");
    }
    for (const std::string& line : section.all("column")) {
        const auto fields = test::words(line);
        table.columns.push_back({.name = fields.at(0),
                                 .type_schema = fields.at(1),
                                 .type_name = fields.at(2),
                                 .typmod = std::stoi(fields.at(3)),
                                 .key_position = static_cast<std::uint16_t>(std::stoi(fields.at(4))),
                                 .generated = fields.at(5) == "1"});
    }
    return table;
}

TEST(DescriptionVectors, EncodeAndDecodeBothWays) {
    for (const test::Section& section : test::read_vectors("descriptions.txt")) {
        SCOPED_TRACE(section.title);
        const TableDescription table = description_from(section);
        const Bytes expected = section.bytes("description");
        Bytes encoded;
        encode_description(table, encoded);
        EXPECT_EQ(to_hex(encoded), to_hex(expected));
        EXPECT_EQ(decode_description(expected), table);
    }
}

TEST(Description, KeyIsInKeyOrder) {
    const auto table = description_from(test::read_vectors("descriptions.txt").at(0));
    EXPECT_EQ(table.key(), (std::vector<std::size_t>{1, 0}));
    EXPECT_TRUE(TableDescription{}.key().empty());
}

TEST(Description, RefusesAKeyWithGapsOrRepetitions) {
    TableDescription table{.id = 1, .schema = "s", .name = "t", .encoding = "UTF8", .columns = {}};
    table.columns.resize(3);
    const auto accepted = [&](std::uint16_t a, std::uint16_t b, std::uint16_t c) {
        table.columns[0].key_position = a;
        table.columns[1].key_position = b;
        table.columns[2].key_position = c;
        Bytes encoded;
        encode_description(table, encoded);
        return decode_description(encoded).has_value();
    };
    EXPECT_TRUE(accepted(0, 0, 0));
    EXPECT_TRUE(accepted(3, 1, 2));
    EXPECT_FALSE(accepted(1, 1, 0));
    EXPECT_FALSE(accepted(2, 0, 0));
    EXPECT_FALSE(accepted(4, 1, 2));
}

TEST(Description, RefusesAZeroByteInANameAndAnUnknownFlag) {
    TableDescription table{
        .id = 1, .schema = "s", .name = "t", .encoding = "UTF8", .columns = {{.name = "c"}}};
    Bytes encoded;
    encode_description(table, encoded);
    ASSERT_TRUE(decode_description(encoded));
    encoded.back() = 2;
    EXPECT_FALSE(decode_description(encoded));
    table.name = std::string("t\0x", 3);
    encoded.clear();
    encode_description(table, encoded);
    EXPECT_FALSE(decode_description(encoded));
}

// ---------------------------------------------------------------- garbage (P14)

/// Whatever is taken for a record is written again as the same bytes: there is one encoding of everything.
void expect_canonical(ByteView bytes) {
    const auto record = decode_record(bytes);
    if (!record) return;
    Bytes again;
    encode_record(*record, again);
    EXPECT_EQ(to_hex(again), to_hex(bytes));
}

std::vector<Bytes> all_records() {
    std::vector<Bytes> all;
    for (const auto& section : test::read_vectors("records.txt")) all.push_back(section.bytes("record"));
    return all;
}

TEST(RecordGarbage, CutAtEveryByteIsNoRecord) {
    for (const Bytes& record : all_records()) {
        const bool describes = record.front() == 'R';  // its description's end is not the record's business
        for (std::size_t size = 0; size < record.size(); ++size) {
            if (describes && size >= 10) break;
            EXPECT_FALSE(decode_record(ByteView(record).first(size))) << record.front() << size;
        }
    }
}

TEST(RecordGarbage, ADescriptionOfAnotherIdIsNoRecord) {
    for (Bytes record : all_records()) {
        if (record.front() != 'R') continue;
        EXPECT_TRUE(decode_record(record));
        record.at(9) ^= 1;  // of the record's id
        EXPECT_FALSE(decode_record(record));
    }
}

TEST(RecordGarbage, AByteTooManyIsNoRecord) {
    for (Bytes record : all_records()) {
        if (record.front() == 'R') continue;
        record.push_back(0);
        EXPECT_FALSE(decode_record(record)) << record.front();
    }
}

TEST(RecordGarbage, EveryByteFlippedIsRefusedOrMeansSomethingElse) {
    for (Bytes record : all_records()) {
        for (std::size_t at = 0; at < record.size(); ++at) {
            for (int flip = 1; flip < 256; ++flip) {
                record[at] ^= static_cast<std::uint8_t>(flip);
                expect_canonical(record);
                record[at] ^= static_cast<std::uint8_t>(flip);
            }
        }
    }
}

TEST(RecordGarbage, RefusesUnknownOperationsFlagsAndKinds) {
    EXPECT_FALSE(decode_record({}));
    EXPECT_FALSE(
        decode_record(test::from_hex("5900"
                                     "0000000000000007")));  // operation Y
    EXPECT_FALSE(
        decode_record(test::from_hex("4901"
                                     "0000000000000007"
                                     "0000")));  // insert with an old key
    EXPECT_FALSE(
        decode_record(test::from_hex("5408"
                                     "0000000000000007")));  // unknown flag
    EXPECT_FALSE(
        decode_record(test::from_hex("4900"
                                     "0000000000000007"
                                     "0001"
                                     "78")));  // value kind x
    EXPECT_FALSE(
        decode_record(test::from_hex("5300"
                                     "0000000000000000")));  // skips nothing
    EXPECT_FALSE(
        decode_record(test::from_hex("5300"
                                     "8000000000000000")));  // absurd count
    EXPECT_FALSE(
        decode_record(test::from_hex("4900"
                                     "0000000000000007"
                                     "ffff"
                                     "6e6e")));  // false count
    EXPECT_FALSE(
        decode_record(test::from_hex("4900"
                                     "0000000000000007"
                                     "0001"
                                     "62ffffffff")));  // false length
}

TEST(RecordGarbage, RefusesChunksThatContradictThemselves) {
    const std::string head =
        "0000000000000007"
        "0000000000000003";
    const std::string no_key =
        "0000"
        "0000"
        "0000";
    EXPECT_TRUE(decode_record(test::from_hex("4300" + head + no_key + "00000000")));
    EXPECT_FALSE(decode_record(test::from_hex("4380" + head + no_key + "00000000")));  // unknown flag
    EXPECT_FALSE(
        decode_record(test::from_hex("4340" + head + no_key + "00000000")));  // a part without repair
    EXPECT_FALSE(
        decode_record(test::from_hex("4303" + head + no_key + "00000000")));  // opens and is the first
    EXPECT_FALSE(
        decode_record(test::from_hex("4309" + head + no_key + "00000000")));  // opens and is cancelled
    EXPECT_FALSE(decode_record(test::from_hex("4301" + head + no_key +
                                              "00000001"
                                              "0000")));  // opens with a row
    EXPECT_FALSE(decode_record(test::from_hex("4300" + head + no_key +
                                              "00000002"
                                              "0000")));  // a row too few
    EXPECT_FALSE(decode_record(test::from_hex("4300" + head + no_key +
                                              "00000000"
                                              "0000")));  // a row too many
    EXPECT_FALSE(decode_record(test::from_hex("4300" + head +
                                              "0001"
                                              "78"
                                              "0000"
                                              "0000"
                                              "00000000")));  // order x
    EXPECT_FALSE(decode_record(test::from_hex("4300" + head +
                                              "0001"
                                              "6e"
                                              "0002"
                                              "00000000"
                                              "00000000"
                                              "0000"
                                              "00000000")));
}

TEST(RecordGarbage, RefusesStatementsThatContradictThemselves) {
    const std::string encoding = "0000000455544638";
    const std::string path = "000000000000";  // and no settings
    const std::string sql = "0000000178";
    const std::string table = "0000000000000007";
    const std::string no_table = "0000000000000000";
    const auto accepted = [&](const std::string& record) {
        return decode_record(test::from_hex("58" + record)).has_value();
    };
    EXPECT_TRUE(accepted("00" + no_table + encoding + path + sql));
    EXPECT_TRUE(accepted("01" + table + encoding + path + sql));
    EXPECT_TRUE(accepted("03" + table + encoding + path + "00000000"));
    EXPECT_FALSE(accepted("04" + no_table + encoding + path + sql));           // unknown flag
    EXPECT_FALSE(accepted("00" + table + encoding + path + sql));              // of a table, yet not captured
    EXPECT_FALSE(accepted("01" + no_table + encoding + path + sql));           // captured, yet of no table
    EXPECT_FALSE(accepted("02" + no_table + encoding + path + "00000000"));    // dropped, yet not captured
    EXPECT_FALSE(accepted("03" + table + encoding + path + sql));              // dropped, yet with a text
    EXPECT_FALSE(accepted("00" + no_table + encoding + path + "00000000"));    // no text
    EXPECT_FALSE(accepted("00" + no_table + encoding + path + "0000000100"));  // a zero byte
    const std::string setting =
        "00000000"
        "0001"
        "0000000161"
        "0000000162";
    EXPECT_TRUE(accepted("00" + no_table + encoding + setting + sql));
    EXPECT_FALSE(accepted("00" + no_table + encoding +
                          "00000000"
                          "0001" +
                          sql));  // lacks the setting
    EXPECT_FALSE(accepted("00" + no_table + encoding +
                          "00000000"
                          "ffff" +
                          sql));
    EXPECT_FALSE(accepted("00" + no_table + encoding +
                          "00000000"
                          "0001"
                          "0000000100"
                          "0000000162" +
                          sql));
}

TEST(Chunk, RowsAreReadOneByOne) {
    Record insert{.operation = Operation::insert};
    insert.row = {Value{ValueKind::null, {}}, Value{ValueKind::text, view("x")}};
    Bytes rows;
    encode_record(insert, rows);
    rows.erase(rows.begin(), rows.begin() + 10);
    const Bytes one = rows;
    rows.insert(rows.end(), one.begin(), one.end());
    ChunkRows reader(rows);
    std::vector<Value> row;
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(reader.at_end());
        ASSERT_TRUE(reader.next(row));
        expect_same(row, insert.row);
    }
    EXPECT_TRUE(reader.at_end());
    EXPECT_FALSE(reader.next(row));
}

TEST(DescriptionGarbage, CutOrFlippedIsRefusedOrMeansSomethingElse) {
    Bytes bytes = test::read_vectors("descriptions.txt").at(0).bytes("description");
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(decode_description(ByteView(bytes).first(size))) << size;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (int flip = 1; flip < 256; ++flip) {
            bytes[at] ^= static_cast<std::uint8_t>(flip);
            if (const auto table = decode_description(bytes)) {
                Bytes again;
                encode_description(*table, again);
                EXPECT_EQ(to_hex(again), to_hex(bytes));
            }
            bytes[at] ^= static_cast<std::uint8_t>(flip);
        }
    }
}

TEST(Record, TooManyColumnsAreTold) {
    Record record{.operation = Operation::insert};
    record.row.resize(65536);
    Bytes out;
    EXPECT_THROW(encode_record(record, out), std::length_error);
}

}  // namespace
}  // namespace onerepl
