package bounds

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
)

// shape is what memory a Go type takes whose fields come in protobuf.
type shape struct {
	fields map[uint32]field
}

// field is what one occurrence of a field adds.
type field struct {
	// added is how many bytes of memory it takes besides the bytes of its text, factor
	// how many one byte of its text takes.
	added, factor int64
	// message is nil for a field with nothing in it that counts.
	message *shape
}

// grown is how many times the size of a slice the slices take from which it grew.
const grown = 2

// shapes are those of types.
type shapes map[reflect.Type]*shape

// of returns the shape of a type.
func (s shapes) of(as reflect.Type) *shape {
	if known := s[as]; known != nil {
		return known
	}
	made := &shape{fields: map[uint32]field{}}
	s[as] = made
	if as.Kind() != reflect.Struct {
		return made
	}
	for i := range as.NumField() {
		// The tag is "bytes,2,rep,name=items".
		tag := strings.Split(as.Field(i).Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		if number, err := strconv.ParseUint(tag[1], 10, 32); err == nil {
			made.fields[uint32(number)] = s.field(as.Field(i).Type)
		}
	}
	return made
}

func (s shapes) field(as reflect.Type) field {
	size := int64(as.Size())
	switch as.Kind() {
	case reflect.Pointer:
		return field{added: int64(as.Elem().Size()), factor: 1, message: s.of(as.Elem())}
	case reflect.Map:
		// Its keys and values are texts and quantities.
		return field{added: grown * int64(mapBytes+as.Key().Size()+as.Elem().Size()), factor: 1}
	case reflect.Slice:
		element := as.Elem()
		if element.Kind() == reflect.Struct {
			return field{added: grown * int64(element.Size()), factor: 1, message: s.of(element)}
		}
		// Numbers can come packed, one in each byte.
		return field{added: grown * int64(element.Size()), factor: grown * int64(element.Size())}
	case reflect.Struct:
		return field{factor: 1, message: s.of(as)}
	default:
		return field{added: size, factor: 1}
	}
}

// The types of a field in protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// weigh returns at least how many bytes of memory a text takes when it is decoded. It
// reads as the generated decoders do, and ends where they end with an error.
func (s *shape) weigh(text []byte) (weight int64) {
	for len(text) > 0 {
		tag, n := varint(text)
		if n == 0 {
			return weight
		}
		text = text[n:]
		// The decoders cut the number to 32 bits.
		known := s.fields[uint32(tag>>3)]
		weight += known.added
		length, rest, ok := payload(tag&7, text)
		if !ok || length > uint64(len(rest)) {
			return weight
		}
		text = rest
		weight += known.factor * int64(length) //nolint:gosec // it is at most the length of the text
		if known.message != nil && tag&7 == wireBytes {
			weight += known.message.weigh(text[:length])
		}
		text = text[length:]
	}
	return weight
}

// payload returns the length of what follows a tag, and the text from there on. That of
// a group is 0: its fields count as if they stood outside.
func payload(wire uint64, text []byte) (length uint64, rest []byte, ok bool) {
	n := 0
	switch wire {
	case wireVarint:
		_, n = varint(text)
		return uint64(n), text, n > 0 //nolint:gosec // it is 10 at most
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

// varint returns a number and how many bytes it takes, 0 if there is none. Unlike
// binary.Uvarint, and like the generated decoders, it drops bits beyond 64.
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
