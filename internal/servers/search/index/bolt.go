package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// boltName is the name of the file in which the library lists its segments: a bbolt database.
const boltName = "root.bolt"

// The two first pages of a bbolt database describe it. The description follows the header of the page:
// magic, version, page size, flags (4 bytes each), the root (16), the free list (8), the number of used
// pages (8), the transaction (8), and the FNV-1a checksum of these fields (8). The byte order is that of
// the machine that wrote the file.
const (
	boltMagic        = 0xED0CDAED
	boltHeader       = 16
	boltMetaBytes    = 64
	boltPagesAt      = 40
	boltChecksumAt   = 56
	boltMinPageBytes = 1 << 9
	boltMaxPageBytes = 1 << 16
)

// checkBolt returns an error if a database is shorter than it says. The library maps the file into
// memory, so a read of a missing page ends the process.
func checkBolt(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("checking the full-text index: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("checking the full-text index: %w", err)
	}
	head := make([]byte, min(info.Size(), 2*boltMaxPageBytes))
	if _, err := io.ReadFull(file, head); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	pageBytes, err := boltPageBytes(head)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if need := usedPages(head, pageBytes) * pageBytes; uint64(info.Size()) < need {
		return fmt.Errorf("%s has %d bytes instead of at least %d", path, info.Size(), need)
	}
	return nil
}

// boltPageBytes returns the size of a page, which is in both descriptions.
func boltPageBytes(head []byte) (uint64, error) {
	for size := uint64(0); size <= boltMaxPageBytes; size = max(2*size, boltMinPageBytes) {
		if meta := boltMeta(head, size); meta != nil {
			return uint64(binary.NativeEndian.Uint32(meta[8:])), nil
		}
	}
	return 0, errors.New("the file is no list of segments")
}

// usedPages returns the largest number of used pages in the descriptions. The file has as many pages
// before a description is written.
func usedPages(head []byte, pageBytes uint64) (pages uint64) {
	for _, at := range []uint64{0, pageBytes} {
		if meta := boltMeta(head, at); meta != nil {
			pages = max(pages, binary.NativeEndian.Uint64(meta[boltPagesAt:]))
		}
	}
	return pages
}

// boltMeta returns the description in the page at an offset, or nil if there is no valid one.
func boltMeta(head []byte, at uint64) []byte {
	if uint64(len(head)) < at+boltHeader+boltMetaBytes {
		return nil
	}
	meta := head[at+boltHeader:][:boltMetaBytes]
	sum := fnv.New64a()
	sum.Write(meta[:boltChecksumAt])
	pageBytes := binary.NativeEndian.Uint32(meta[8:])
	if binary.NativeEndian.Uint32(meta) != boltMagic || binary.NativeEndian.Uint64(meta[boltChecksumAt:]) != sum.Sum64() ||
		pageBytes < boltMinPageBytes || pageBytes > boltMaxPageBytes {
		return nil
	}
	return meta
}
