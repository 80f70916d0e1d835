package work

import (
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PrunedHash returns a hash of those fields of the object that count as drift if the member changes
// them. Objects that differ only in the status and in fields that the API server sets have the same
// hash. The hash depends only on the object's content, so another process computes the same hash as
// long as its Prune removes the same fields.
//
// PrunedHash runs for every object in every pass. Therefore it neither copies values that it only
// reads, nor encodes them as text.
func PrunedHash(object *unstructured.Unstructured) uint64 {
	hash := digest{sum: fnvOffset}
	hash.writeValue(prunedCopy(object).Object)
	return hash.sum
}

// prunedCopy returns the object without the fields that Prune removes. The result shares the other
// fields with the object, so the caller must not change it.
func prunedCopy(object *unstructured.Unstructured) *unstructured.Unstructured {
	copied := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	copyField(copied.Object, "metadata", 2) // up to the annotations
	if kind := object.GetKind(); kind == "Job" || kind == "Service" {
		copyField(copied.Object, "spec", 4) // up to the labels of the Pod template
	}
	Prune(copied)
	return copied
}

// copyField replaces a map in parent by a copy. It copies nested maps down to the given depth, and
// shares all other values.
func copyField(parent map[string]any, field string, depth int) {
	value, ok := parent[field].(map[string]any)
	if !ok || depth == 0 {
		return
	}
	copied := maps.Clone(value)
	parent[field] = copied
	for key := range copied {
		copyField(copied, key, depth-1)
	}
}

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// digest hashes values that can be decoded from JSON. A header with the type and the length precedes
// each value, so that different values are encoded differently.
type digest struct {
	sum uint64
	// keys contains the sorted keys of the map that is being hashed and of the maps around it.
	keys []string
}

func (d *digest) writeValue(value any) {
	switch typed := value.(type) {
	case nil:
		d.writeHeader('n', 0)
	case bool:
		d.writeHeader('b', boolBit(typed))
	case string:
		d.writeText('s', typed)
	case int64:
		d.writeHeader('i', uint64(typed)) // the bits of the number
	case float64:
		d.writeNumber(typed)
	case []any:
		d.writeHeader('l', uint64(len(typed)))
		for _, element := range typed {
			d.writeValue(element)
		}
	case map[string]any:
		d.writeMap(typed)
	}
}

func (d *digest) writeMap(value map[string]any) {
	d.writeHeader('m', uint64(len(value)))
	first := len(d.keys)
	for key := range value {
		d.keys = append(d.keys, key)
	}
	last := len(d.keys)
	slices.Sort(d.keys[first:])
	for i := first; i < last; i++ {
		key := d.keys[i] // nested maps may move the slice
		d.writeText('k', key)
		d.writeValue(value[key])
	}
	d.keys = d.keys[:first]
}

// writeNumber writes a number to the hash. It treats 1.0 and 1 as equal, because the type that a
// decoder returns depends on how the number was written.
func (d *digest) writeNumber(value float64) {
	if whole := int64(value); float64(whole) == value {
		d.writeHeader('i', uint64(whole)) // the bits of the number
		return
	}
	d.writeHeader('f', math.Float64bits(value))
}

func (d *digest) writeText(kind byte, text string) {
	d.writeHeader(kind, uint64(len(text)))
	for i := range len(text) {
		d.writeByte(text[i])
	}
}

func (d *digest) writeHeader(kind byte, value uint64) {
	d.writeByte(kind)
	for shift := 0; shift < 64; shift += 8 {
		d.writeByte(byte(value >> shift)) // starts with the least significant byte
	}
}

func (d *digest) writeByte(b byte) { d.sum = (d.sum ^ uint64(b)) * fnvPrime }

func boolBit(value bool) uint64 {
	if value {
		return 1
	}
	return 0
}
