// Fuzz the reader of Thrift's compact protocol: structures that are encoded in any way the protocol allows, with fields that
// the shape has not, are read as they were; damaged ones at least do no harm.

#include <deque>

#include "../../geval_py/scoring/kernel/thrift.hpp"
#include "kernel.hpp"

namespace {

using Reader = ThriftReader;

void put_unsigned(std::string& bytes, std::uint64_t number) {
    for (; number > 127; number >>= 7) bytes += static_cast<char>((number & 127) | 128);
    bytes += static_cast<char>(number);
}

void put_number(std::string& bytes, std::int64_t number) {
    put_unsigned(bytes, static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63));
}

std::int64_t number_of(int kind, Rest& rest) {
    std::uint64_t number = 0;
    for (unsigned bytes = rest.byte() % 9; bytes; --bytes) number = number << 8 | rest.byte();
    return kind == Reader::I16   ? static_cast<std::int16_t>(number)
           : kind == Reader::I32 ? static_cast<std::int32_t>(number)
                                 : static_cast<std::int64_t>(number);
}

ThriftShape shape_of(Rest& rest, int depth) {
    constexpr int KINDS[] = {Reader::TRUE_, Reader::I16, Reader::I32, Reader::I64, Reader::TEXT, Reader::LIST, Reader::STRUCT};
    ThriftShape shape;
    shape.kind = depth ? KINDS[rest.byte() % (depth < 4 ? 7 : 5)] : int{Reader::STRUCT};
    if (shape.kind == Reader::LIST) {
        do shape.parts.assign(1, shape_of(rest, depth + 1));
        while (shape.parts[0].kind == Reader::TRUE_ && rest.size);  // which lists have as bytes
        if (shape.parts[0].kind == Reader::TRUE_) shape.parts[0].kind = Reader::I32;
    }
    for (std::int64_t number = 0, left = shape.kind == Reader::STRUCT ? 1 + rest.byte() % 4 : 0; left; --left) {
        number += 1 + rest.byte() % 20;
        shape.fields.push_back(number);
        shape.parts.push_back(shape_of(rest, depth + 1));
    }
    return shape;
}

// Puts the head of a field, in the short form where there is one and it is chosen.
void put_head(std::string& bytes, std::int64_t number, std::int64_t& last, int kind, Rest& rest) {
    const std::int64_t step = number - last;
    if (step > 0 && step < 16 && rest.byte() % 4) {
        bytes += static_cast<char>(step << 4 | kind);
    } else {
        bytes += static_cast<char>(kind);
        put_number(bytes, number);
    }
    last = number;
}

// Encodes a value that it makes, as a field's or a list's entry.
ThriftValue put_value(std::string& bytes, const ThriftShape& shape, std::deque<std::string>& texts, Rest& rest);

ThriftValue put_struct(std::string& bytes, const ThriftShape& shape, std::deque<std::string>& texts, Rest& rest) {
    ThriftValue value;
    value.kind = ThriftValue::STRUCT;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < shape.fields.size(); ++i) {
        if (rest.byte() % 8 == 0) continue;
        const std::int64_t other = 1 + rest.byte() % 200;
        if (rest.byte() % 4 == 0 && !std::count(shape.fields.begin(), shape.fields.end(), other)) {
            ThriftShape skipped = shape_of(rest, 3);
            put_head(bytes, other, last, skipped.kind, rest);
            if (skipped.kind != Reader::TRUE_) put_value(bytes, skipped, texts, rest);
        }
        const ThriftShape& part = shape.parts[i];
        if (part.kind == Reader::TRUE_) {
            value.parts.emplace_back();
            value.parts.back().number = rest.byte() % 2;
            put_head(bytes, shape.fields[i], last, value.parts.back().number ? Reader::TRUE_ : Reader::FALSE_, rest);
        } else {
            put_head(bytes, shape.fields[i], last, part.kind, rest);
            value.parts.push_back(put_value(bytes, part, texts, rest));
        }
        value.parts.back().field = static_cast<std::int16_t>(shape.fields[i]);
    }
    bytes += '\0';
    return value;
}

ThriftValue put_value(std::string& bytes, const ThriftShape& shape, std::deque<std::string>& texts, Rest& rest) {
    ThriftValue value;
    if (shape.kind == Reader::STRUCT) return put_struct(bytes, shape, texts, rest);
    if (shape.kind == Reader::LIST) {
        value.kind = ThriftValue::LIST;
        const std::size_t count = rest.byte() % 20;
        const bool is_long = count > 14 || rest.byte() % 8 == 0;
        bytes += static_cast<char>((is_long ? 15 : count) << 4 | static_cast<std::size_t>(shape.parts[0].kind));
        if (is_long) put_unsigned(bytes, count);
        for (std::size_t i = 0; i < count; ++i) value.parts.push_back(put_value(bytes, shape.parts[0], texts, rest));
    } else if (shape.kind == Reader::TEXT) {
        value.kind = ThriftValue::TEXT;
        texts.emplace_back();
        for (std::size_t left = rest.byte() % 9; left; --left) texts.back() += static_cast<char>(rest.byte());
        value.text = text_of(texts.back());
        put_unsigned(bytes, value.text.size());
        bytes += texts.back();
    } else {
        value.kind = ThriftValue::NUMBER;
        put_number(bytes, value.number = number_of(shape.kind, rest));
    }
    return value;
}

void expect(const ThriftValue& found, const ThriftValue& wanted) {
    EXPECT(found.kind == wanted.kind && found.field == wanted.field && found.parts.size() == wanted.parts.size());
    if (wanted.kind == ThriftValue::TRUTH || wanted.kind == ThriftValue::NUMBER) EXPECT(found.number == wanted.number);
    if (wanted.kind == ThriftValue::TEXT)
        EXPECT(std::string(found.text.begin, found.text.end) == std::string(wanted.text.begin, wanted.text.end));
    for (std::size_t i = 0; i < wanted.parts.size(); ++i) expect(found.parts[i], wanted.parts[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Rest rest{data, size};
    const unsigned damage = rest.byte();
    const ThriftShape shape = shape_of(rest, 0);
    std::deque<std::string> texts;
    std::string bytes;
    const ThriftValue wanted = put_struct(bytes, shape, texts, rest);
    const std::size_t whole = bytes.size();
    bool is_whole = damage % 3 == 0;
    if (!is_whole && damage % 3 == 1) {
        bytes[rest.byte() % bytes.size()] = static_cast<char>(rest.byte());
        bytes.resize(bytes.size() - std::min<std::size_t>(bytes.size(), rest.byte() % 4));
    } else if (!is_whole) {
        bytes.assign(rest.text().begin, rest.text().end);
    }
    const Exact exact(text_of(bytes));
    Reader reader(exact.text(), is_whole ? 1 << 20 : rest.byte());
    ThriftValue found;
    const Reader::Fault fault = reader.read(shape, found);
    EXPECT(reader.left().begin <= reader.left().end && reader.left().end == exact.text().end);
    if (!is_whole) return 0;
    EXPECT(fault == Reader::NO_FAULT && exact.text().size() - reader.left().size() == whole);
    expect(found, wanted);
    return 0;
}
