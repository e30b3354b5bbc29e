// Structures in Thrift's compact protocol, read strictly: the native twin of reading/thrift.py, which says what is wrong.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text.hpp"

namespace {

// What a field holds: one of the kinds, a list of one shape, or some fields of a structure.
struct ThriftShape {
    int kind = 0;
    std::vector<ThriftShape> parts;   // of a list the shape of its entries, of a structure those of its fields,
    std::vector<std::int64_t> fields;  // which have these numbers
};

struct ThriftValue {
    enum Kind : std::uint8_t { TRUTH, NUMBER, TEXT, LIST, STRUCT } kind = TRUTH;
    std::int16_t field = 0;  // the number of the field that it is in
    union {
        std::int64_t number = 0;
        Text text;
    };
    std::vector<ThriftValue> parts;
};

class ThriftReader {
  public:
    enum Kind { TRUE_ = 1, FALSE_ = 2, BYTE = 3, I16 = 4, I32 = 5, I64 = 6, DOUBLE = 7, TEXT = 8, LIST = 9, SET = 10, STRUCT = 12 };

    // Why nothing can be read: the data end, lists have too many entries, or it is not in the protocol.
    enum Fault { NO_FAULT, END, TOO_MANY, WRONG };

    ThriftReader(Text data, std::uint64_t most) : left_(data), most_(most) {}

    // Reads the structure at the beginning.
    Fault read(const ThriftShape& shape, ThriftValue& found, int depth = 0) {
        found.kind = ThriftValue::STRUCT;
        if (depth > MOST_NESTED) return WRONG;
        std::int64_t number = 0;
        for (;;) {
            std::uint8_t head;
            if (!byte(head)) return END;
            if (!head) return NO_FAULT;
            if (head >> 4) {
                number += head >> 4;
            } else if (const Fault fault = this->number(16, number)) {
                return fault;
            }
            if (number < 1 || number > MOST_NUMBER) return WRONG;
            const int kind = head & 15;
            const bool truth = kind == TRUE_ || kind == FALSE_;  // which has no bytes of its own
            const auto known = std::find(shape.fields.begin(), shape.fields.end(), number);
            if (known == shape.fields.end()) {
                const Fault fault = truth ? NO_FAULT : skip(kind, depth);
                if (fault) return fault;
                continue;
            }
            const ThriftShape& wanted = shape.parts[static_cast<std::size_t>(known - shape.fields.begin())];
            for (const ThriftValue& other : found.parts)
                if (other.field == number) return WRONG;
            found.parts.emplace_back();
            ThriftValue& part = found.parts.back();
            part.field = static_cast<std::int16_t>(number);
            if (wanted.kind == TRUE_ && truth) {
                part.kind = ThriftValue::TRUTH;
                part.number = kind == TRUE_;
            } else if (kind != wanted.kind) {
                return WRONG;
            } else if (const Fault fault = value(wanted, part, depth)) {
                return fault;
            }
        }
    }

    // What was not read.
    Text left() const { return left_; }

  private:
    static constexpr int MOST_NESTED = 16;
    static constexpr std::int64_t MOST_NUMBER = 0x7fff;

    Fault value(const ThriftShape& shape, ThriftValue& found, int depth) {
        if (shape.kind == STRUCT) return read(shape, found, depth + 1);
        if (shape.kind == LIST) {
            found.kind = ThriftValue::LIST;
            std::uint64_t count;
            int kind;
            if (const Fault fault = list(count, kind)) return fault;
            if (count && kind != shape.parts[0].kind) return WRONG;
            found.parts.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(count, left_.size())));
            for (; count; --count) {
                found.parts.emplace_back();
                if (const Fault fault = value(shape.parts[0], found.parts.back(), depth + 1)) return fault;
            }
            return NO_FAULT;
        }
        if (shape.kind == TEXT) {
            found.kind = ThriftValue::TEXT;
            return sized(found.text);
        }
        found.kind = ThriftValue::NUMBER;
        return number(shape.kind == I16 ? 16 : shape.kind == I32 ? 32 : 64, found.number);
    }

    Fault skip(int kind, int depth) {
        std::uint64_t size;
        Text text;
        switch (kind) {
        case I16:
        case I32:
        case I64: return unsigned_number(size);
        case TEXT: return sized(text);
        case BYTE: return jump(1);
        case DOUBLE: return jump(8);
        case LIST:
        case SET: {
            int of;
            if (const Fault fault = list(size, of)) return fault;
            if (depth > MOST_NESTED) return WRONG;
            if (of == TRUE_ || of == FALSE_) of = BYTE;
            for (; size; --size)
                if (const Fault fault = skip(of, depth + 1)) return fault;
            return NO_FAULT;
        }
        case STRUCT: {
            ThriftValue skipped;
            return read(ThriftShape(), skipped, depth + 1);
        }
        default: return WRONG;
        }
    }

    // Reads the beginning of a list: the number of its entries, and their kind.
    Fault list(std::uint64_t& count, int& kind) {
        std::uint8_t head;
        if (!byte(head)) return END;
        count = head >> 4;
        kind = head & 15;
        if (count == LONG_LIST)
            if (const Fault fault = unsigned_number(count)) return fault;
        if (count > most_) return TOO_MANY;
        most_ -= count;
        return NO_FAULT;
    }

    bool byte(std::uint8_t& byte) {
        if (left_.begin == left_.end) return false;
        byte = static_cast<std::uint8_t>(*left_.begin++);
        return true;
    }

    // A number that needs more than 64 bits is the largest.
    Fault unsigned_number(std::uint64_t& value) {
        value = 0;
        bool fits = true;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            std::uint8_t part;
            if (!byte(part)) return END;
            fits &= shift < 63 || (part & 127) < 2;
            value |= std::uint64_t{part & 127u} << shift;
            if (part > 127) continue;
            if (!fits) value = NONE_FITS;
            fits_ = fits;
            return NO_FAULT;
        }
        return WRONG;
    }

    Fault number(unsigned bits, std::int64_t& number) {
        std::uint64_t value;
        if (const Fault fault = unsigned_number(value)) return fault;
        if (!fits_ || (bits < 64 && value >> bits)) return WRONG;
        number = static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
        return NO_FAULT;
    }

    Fault sized(Text& text) {
        std::uint64_t size;
        if (const Fault fault = unsigned_number(size)) return fault;
        text.begin = left_.begin;
        const Fault fault = jump(size);
        text.end = left_.begin;
        return fault;
    }

    Fault jump(std::uint64_t size) {
        if (size > left_.size()) return END;
        left_.begin += size;
        return NO_FAULT;
    }

    static constexpr std::uint64_t LONG_LIST = 15, NONE_FITS = ~std::uint64_t{0};
    Text left_;
    std::uint64_t most_;
    bool fits_ = true;
};

}  // namespace
