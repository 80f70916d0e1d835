// Package encoding compresses the JSON of many similar objects.
//
// One Codec serves the objects of one kind. It compresses with zstd and with a dictionary that it
// builds from some of the first objects of the kind, because most fields of an object repeat in other
// objects.
//
// Invariants:
//   - Objects that were compressed before the dictionary existed remain readable.
//   - A Codec never changes its dictionary.
package encoding

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

const (
	// untrainedObjects is the number of objects that are compressed before the dictionary is built. A
	// dictionary needs about 1 MiB, which is more than kinds with few objects would save.
	untrainedObjects = 128
	// sampleCount is the number of objects from which the dictionary is built.
	sampleCount = 16
	// dictionaryBytes limits the size of the dictionary. Encoders hold tables of it in memory.
	dictionaryBytes = 32 << 10
	// windowBytes limits the distance of a match, and thus the memory of encoders and decoders.
	windowBytes = 128 << 10
	// dictionaryID marks objects that were compressed with the dictionary.
	dictionaryID = 1
	// decoders is the number of objects of one kind that are decompressed in parallel.
	decoders = 2
)

// Shared holds the encoder and the decoder of all objects that are compressed without a
// dictionary. Kinds with few objects need no encoder of their own.
type Shared struct {
	pair coderPair
}

// NewShared returns the coders that the codecs of a cache share. maxObjectBytes limits the size of
// one decompressed object.
func NewShared(maxObjectBytes uint64) (*Shared, error) {
	pair, err := newCoderPair(maxObjectBytes, nil)
	if err != nil {
		return nil, err
	}
	return &Shared{pair: pair}, nil
}

// coderPair is an encoder with its decoder.
type coderPair struct {
	encoder        *zstd.Encoder
	decoder        *zstd.Decoder
	maxObjectBytes uint64
}

func newCoderPair(maxObjectBytes uint64, dictionary []byte) (coderPair, error) {
	encoderOptions := []zstd.EOption{
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(windowBytes), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false),
	}
	decoderOptions := []zstd.DOption{
		zstd.WithDecoderConcurrency(decoders), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxObjectBytes),
	}
	if dictionary != nil {
		encoderOptions = append(encoderOptions, zstd.WithEncoderDictRaw(dictionaryID, dictionary))
		decoderOptions = append(decoderOptions, zstd.WithDecoderDictRaw(dictionaryID, dictionary))
	}
	encoder, err := zstd.NewWriter(nil, encoderOptions...)
	if err != nil {
		return coderPair{}, fmt.Errorf("creating the compressor of objects: %w", err)
	}
	decoder, err := zstd.NewReader(nil, decoderOptions...)
	if err != nil {
		return coderPair{}, fmt.Errorf("creating the decompressor of objects: %w", err)
	}
	return coderPair{encoder: encoder, decoder: decoder, maxObjectBytes: maxObjectBytes}, nil
}

// Codec compresses the objects of one kind. Its methods may be called in parallel.
type Codec struct {
	shared *Shared
	// trained is nil until the dictionary exists.
	trained atomic.Pointer[coderPair]

	mu      sync.Mutex
	objects int
	samples [][]byte
	err     error
}

// NewCodec returns a codec without a dictionary.
func NewCodec(shared *Shared) *Codec { return &Codec{shared: shared} }

// AppendCompressed appends the compressed form of an object to dst. Some of the first objects become
// the dictionary.
func (c *Codec) AppendCompressed(dst, object []byte) []byte {
	if pair := c.trained.Load(); pair != nil {
		return pair.encoder.EncodeAll(object, dst)
	}
	c.addSample(object)
	return c.shared.pair.encoder.EncodeAll(object, dst)
}

// AppendDecompressed appends the object that AppendCompressed compressed to dst.
func (c *Codec) AppendDecompressed(dst, compressed []byte) ([]byte, error) {
	decoder := c.shared.pair.decoder
	if pair := c.trained.Load(); pair != nil {
		decoder = pair.decoder
	}
	object, err := decoder.DecodeAll(compressed, dst)
	if err != nil {
		return dst, fmt.Errorf("decompressing a cached object: %w", err)
	}
	return object, nil
}

// addSample collects an object for the dictionary, and builds the dictionary from enough objects.
func (c *Codec) addSample(object []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trained.Load() != nil || c.err != nil {
		return
	}
	c.objects++
	if c.objects%(untrainedObjects/sampleCount) != 0 {
		return
	}
	c.samples = append(c.samples, append([]byte(nil), object[:min(len(object), dictionaryBytes/4)]...))
	if len(c.samples) < sampleCount {
		return
	}
	pair, err := newCoderPair(c.shared.pair.maxObjectBytes, dictionaryOf(c.samples))
	c.samples, c.err = nil, err
	if err == nil {
		c.trained.Store(&pair)
	}
}

// dictionaryOf joins samples. Later bytes of a dictionary are closer to the object, thus the
// newest sample is last, and the oldest samples are left out if the dictionary becomes too large.
func dictionaryOf(samples [][]byte) []byte {
	first, size := len(samples), 0
	for first > 0 && size+len(samples[first-1]) <= dictionaryBytes {
		first--
		size += len(samples[first])
	}
	dictionary := make([]byte, 0, size)
	for _, sample := range samples[first:] {
		dictionary = append(dictionary, sample...)
	}
	return dictionary
}
