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
	// expectsObject is true if the answer must be an object and no byte of the answer was read yet.
	// allowsProtobuf is true if the answer may be a protobuf object.
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
func (m *bodyMeter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.ReadCloser.Read(p)
	if exceeded := m.countAll(p[:n]); exceeded != nil {
		m.err = exceeded
		return 0, exceeded
	}
	return n, err
}

// countAll counts bytes that were read.
func (m *bodyMeter) countAll(read []byte) error {
	if err := m.checkFirstByte(read); err != nil {
		return err
	}
	for len(read) > 0 {
		counted, _, err := m.count(read)
		if err != nil {
			return err
		}
		read = read[counted:]
	}
	return nil
}

// checkFirstByte validates the first byte of an answer. This is needed because some decoders ignore
// the media type and decode everything that does not begin like JSON or protobuf as YAML.
func (m *bodyMeter) checkFirstByte(read []byte) error {
	if !m.expectsObject {
		return nil
	}
	text := bytes.TrimLeft(read, " \t\r\n")
	if len(text) == 0 {
		return nil
	}
	m.expectsObject = false
	m.isBinary = m.allowsProtobuf && text[0] == protobufPrefix[0]
	if text[0] == '{' || m.isBinary {
		return nil
	}
	return m.record(ExceededError{Bound: ObjectIdentity, Subject: subjectOf(m.subject), Detail: "the member answers with something that is not a JSON object"})
}

// count counts bytes up to the end of a top-level JSON value, and reports whether such a value
// ended.
func (m *bodyMeter) count(read []byte) (counted int, ended bool, err error) {
	counted = len(read)
	if !m.isBinary {
		counted, ended = m.values.scan(read)
	}
	m.bytes += int64(counted)
	switch {
	case m.bytes > m.bytesAllowed:
		err = m.record(ExceededError{Bound: m.bytesBound, Subject: subjectOf(m.subject), Limit: m.bytesAllowed, Measured: m.bytesAllowed + 1, Unit: "bytes"})
	case m.values.count > m.valuesAllowed:
		err = m.record(ExceededError{Bound: JSONValues, Subject: subjectOf(m.subject), Limit: m.valuesAllowed, Measured: m.valuesAllowed + 1, Unit: "JSON objects, arrays and elements of arrays"})
	}
	return counted, ended, err
}

func (m *bodyMeter) isLarge() bool { return m.bytes > largeBytes || m.values.count > largeValues }

func (m *bodyMeter) reset() {
	m.bytes, m.values = 0, valueCounter{openBrackets: m.values.openBrackets[:0]}
}
