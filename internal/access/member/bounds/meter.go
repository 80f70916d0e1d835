package bounds

import (
	"bytes"
	"io"
	"net/url"
)

// bodyMeter counts the bytes and the JSON values that are read through it since its last reset. It
// returns an error when one of the counts exceeds its limit.
type bodyMeter struct {
	io.ReadCloser
	subject *url.URL
	record  func(ExceededError) error
	// expectsObject is true if the response must be an object and no byte of the response was read yet.
	// allowsProtobuf is true if the response may be a protobuf object.
	expectsObject, allowsProtobuf bool
	// isBinary is true for content that contains no JSON values to count.
	isBinary bool
	// bytesBound is the name of the limit for the bytes.
	bytesBound                  Bound
	bytesAllowed, valuesAllowed int64

	bytes  int64
	values valueCounter
	err    error
}

// Read implements io.Reader.
func (b *bodyMeter) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if exceeded := b.countAll(p[:n]); exceeded != nil {
		b.err = exceeded
		return 0, exceeded
	}
	return n, err
}

// countAll counts bytes that were read.
func (b *bodyMeter) countAll(read []byte) error {
	if err := b.validateFirstByte(read); err != nil {
		return err
	}
	for len(read) > 0 {
		counted, _, err := b.count(read)
		if err != nil {
			return err
		}
		read = read[counted:]
	}
	return nil
}

// validateFirstByte validates the first byte of a response. This is needed because some decoders ignore
// the media type and decode everything that does not begin like JSON or protobuf as YAML.
func (b *bodyMeter) validateFirstByte(read []byte) error {
	if !b.expectsObject {
		return nil
	}
	text := bytes.TrimLeft(read, " \t\r\n")
	if len(text) == 0 {
		return nil
	}
	b.expectsObject = false
	b.isBinary = b.allowsProtobuf && text[0] == protobufPrefix[0]
	if text[0] == '{' || b.isBinary {
		return nil
	}
	return b.record(ExceededError{Bound: ObjectIdentity, Subject: subjectOf(b.subject),
		Detail: "the member responds with something that is not a JSON object"})
}

// count counts bytes up to the end of a top-level JSON value, and reports whether such a value
// ended.
func (b *bodyMeter) count(read []byte) (counted int, ended bool, err error) {
	counted = len(read)
	if !b.isBinary {
		counted, ended = b.values.scan(read)
	}
	b.bytes += int64(counted)
	switch {
	case b.bytes > b.bytesAllowed:
		err = b.record(ExceededError{Bound: b.bytesBound, Subject: subjectOf(b.subject), Limit: b.bytesAllowed, Measured: b.bytesAllowed + 1,
			Unit: "bytes"})
	case b.values.count > b.valuesAllowed:
		err = b.record(ExceededError{Bound: JSONValues, Subject: subjectOf(b.subject), Limit: b.valuesAllowed, Measured: b.valuesAllowed + 1,
			Unit: "JSON objects, arrays and elements of arrays"})
	}
	return counted, ended, err
}

func (b *bodyMeter) isLarge() bool { return b.bytes > largeBytes || b.values.count > largeValues }

func (b *bodyMeter) reset() {
	b.bytes, b.values = 0, valueCounter{openBrackets: b.values.openBrackets[:0]}
}
