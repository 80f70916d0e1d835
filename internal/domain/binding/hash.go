package binding

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// alphabet contains neither vowels nor characters that look alike, so that a hash contains no words
// and is easy to type.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// ShortHash hashes s with 32 bit FNV-1a, writes the hash as a decimal number and
// replaces each digit by the letter or digit that its character code selects.
// The result has 1 to 10 characters, all valid in a DNS label.
//
// The encoding is part of the wire format: names of Works and label keys contain it, and components
// of all versions must compute the same text. It must never change.
func ShortHash(s string) string {
	var out strings.Builder
	for _, digit := range []byte(strconv.FormatUint(uint64(Hash32(s)), 10)) {
		out.WriteByte(alphabet[int(digit)%len(alphabet)])
	}
	return out.String()
}

// Hash32 returns the 32 bit FNV-1a hash of the bytes of s.
func Hash32(s string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(s)) // a hash never fails to write
	return hash.Sum32()
}
