package objectcache

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

// coderPair is an encoder with its decoder.
type coderPair struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	// maxObjectBytes limits the size of one decompressed object.
	maxObjectBytes uint64
}

// newCoderPair returns coders that use the given dictionary. A nil dictionary means none.
func newCoderPair(maxObjectBytes uint64, dictionary []byte) (*coderPair, error) {
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
		return nil, fmt.Errorf("creating the compressor of objects: %w", err)
	}
	decoder, err := zstd.NewReader(nil, decoderOptions...)
	if err != nil {
		return nil, fmt.Errorf("creating the decompressor of objects: %w", err)
	}
	return &coderPair{encoder: encoder, decoder: decoder, maxObjectBytes: maxObjectBytes}, nil
}

// codec compresses the objects of one kind with zstd. After the first objects, it uses a dictionary that
// it builds from some of them, because most fields of an object repeat in other objects. Objects that were
// compressed before the dictionary existed remain readable. Methods may be called in parallel.
type codec struct {
	// shared compresses without a dictionary. All kinds share it, so kinds with few objects need no
	// encoder of their own.
	shared *coderPair
	// trained is nil until the dictionary exists.
	trained atomic.Pointer[coderPair]

	mu      sync.Mutex
	objects int
	samples [][]byte
	err     error
}

// newCodec returns a codec without a dictionary.
func newCodec(shared *coderPair) *codec { return &codec{shared: shared} }

// appendCompressed appends the compressed form of an object to dst. Some of the first objects become
// the dictionary.
func (c *codec) appendCompressed(dst, object []byte) []byte {
	if pair := c.trained.Load(); pair != nil {
		return pair.encoder.EncodeAll(object, dst)
	}
	c.addSample(object)
	return c.shared.encoder.EncodeAll(object, dst)
}

// appendDecompressed appends the object that appendCompressed compressed to dst.
func (c *codec) appendDecompressed(dst, compressed []byte) ([]byte, error) {
	decoder := c.shared.decoder
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
func (c *codec) addSample(object []byte) {
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
	pair, err := newCoderPair(c.shared.maxObjectBytes, newDictionary(c.samples))
	c.samples, c.err = nil, err
	if err == nil {
		c.trained.Store(pair)
	}
}

// newDictionary joins samples. Later bytes of a dictionary are closer to the object, thus the
// newest sample is last, and the oldest samples are left out if the dictionary becomes too large.
func newDictionary(samples [][]byte) []byte {
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
