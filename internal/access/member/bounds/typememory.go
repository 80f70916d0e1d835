package bounds

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
)

// typeMemory describes how much memory a Go type takes when it is decoded from protobuf.
type typeMemory struct {
	fields map[uint32]fieldMemory
}

// fieldMemory describes how much memory one occurrence of a field takes.
type fieldMemory struct {
	// fixedBytes is the memory of the field without its encoded text, in bytes. bytesPerByte is the
	// additional memory for each byte of the encoded text.
	fixedBytes, bytesPerByte int64
	// message describes the fields of a message. It is nil for a field that is not a message.
	message *typeMemory
}

// sliceGrowth is the factor by which a slice takes more memory than its elements, because a growing
// slice is copied to larger slices.
const sliceGrowth = 2

// typeMemories contains the descriptions of Go types.
type typeMemories map[reflect.Type]*typeMemory

// forType returns the description of a Go type.
func (t typeMemories) forType(goType reflect.Type) *typeMemory {
	if existing := t[goType]; existing != nil {
		return existing
	}
	memory := &typeMemory{fields: map[uint32]fieldMemory{}}
	t[goType] = memory
	if goType.Kind() != reflect.Struct {
		return memory
	}
	for i := range goType.NumField() {
		// An example of a tag is "bytes,2,rep,name=items".
		tag := strings.Split(goType.Field(i).Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		if number, err := strconv.ParseUint(tag[1], 10, 32); err == nil {
			memory.fields[uint32(number)] = t.forField(goType.Field(i).Type)
		}
	}
	return memory
}

func (t typeMemories) forField(goType reflect.Type) fieldMemory {
	size := int64(goType.Size())
	switch goType.Kind() {
	case reflect.Pointer:
		return fieldMemory{fixedBytes: int64(goType.Elem().Size()), bytesPerByte: 1, message: t.forType(goType.Elem())}
	case reflect.Map:
		// The keys and values of maps are texts and quantities, which contain no other messages.
		return fieldMemory{fixedBytes: sliceGrowth * int64(mapBytes+goType.Key().Size()+goType.Elem().Size()), bytesPerByte: 1}
	case reflect.Slice:
		element := goType.Elem()
		if element.Kind() == reflect.Struct {
			return fieldMemory{fixedBytes: sliceGrowth * int64(element.Size()), bytesPerByte: 1, message: t.forType(element)}
		}
		// Numbers can be packed, so that each byte of text is one number.
		return fieldMemory{fixedBytes: sliceGrowth * int64(element.Size()), bytesPerByte: sliceGrowth * int64(element.Size())}
	case reflect.Struct:
		return fieldMemory{bytesPerByte: 1, message: t.forType(goType)}
	default:
		return fieldMemory{fixedBytes: size, bytesPerByte: 1}
	}
}

// The wire types of protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// estimate returns an upper bound for the memory, in bytes, of the decoded form of a text. It
// parses the text as the generated decoders do, and stops where the generated decoders return an
// error.
func (t *typeMemory) estimate(text []byte) (weight int64) {
	for len(text) > 0 {
		tag, n := varint(text)
		if n == 0 {
			return weight
		}
		text = text[n:]
		// The field number is truncated to 32 bits, as in the generated decoders.
		fieldType := t.fields[uint32(tag>>3)]
		weight += fieldType.fixedBytes
		length, rest, ok := payload(tag&7, text)
		if !ok || length > uint64(len(rest)) {
			return weight
		}
		text = rest
		weight += fieldType.bytesPerByte * int64(length) // it is at most the length of the text
		if fieldType.message != nil && tag&7 == wireBytes {
			weight += fieldType.message.estimate(text[:length])
		}
		text = text[length:]
	}
	return weight
}

// payload returns the length of the value that follows a tag, and the text that begins with that
// value. The length of a group is 0, because the fields of a group are counted like fields outside
// of a group.
func payload(wire uint64, text []byte) (length uint64, rest []byte, ok bool) {
	n := 0
	switch wire {
	case wireVarint:
		_, n = varint(text)
		return uint64(n), text, n > 0 // it is 10 at most
	case wireFixed64:
		length = 8
	case wireFixed32:
		length = 4
	case wireBytes:
		if length, n = varint(text); n == 0 {
			return 0, text, false
		}
	}
	return length, text[n:], true
}

// varint returns a number and the number of bytes that it takes, or 0 bytes if the text does not
// begin with a number. Unlike binary.Uvarint, but like the generated decoders, it drops the bits
// beyond 64.
func varint(text []byte) (number uint64, n int) {
	for n < min(len(text), binary.MaxVarintLen64) {
		b := text[n]
		number |= uint64(b&0x7f) << (7 * n)
		if n++; b < 0x80 {
			return number, n
		}
	}
	return 0, 0
}
