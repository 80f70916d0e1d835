package bounds

import (
	"bytes"
	"io"
	"net/url"
)

// meter counts the bytes and the JSON values that are read through it, since its last
// reset, and ends in an error at a limit.
type meter struct {
	io.ReadCloser
	subject *url.URL
	record  func(ExceededError) error
	// binary is true for what is no JSON, and has no values to count.
	binary bool
	// size is the bound on bytes.
	size                        Bound
	bytesAllowed, valuesAllowed int64

	bytes, values int64
	err           error
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.ReadCloser.Read(p)
	if exceeded := m.add(p[:n]); exceeded != nil {
		m.err = exceeded
		return 0, exceeded
	}
	return n, err
}

// add counts bytes that were read.
func (m *meter) add(read []byte) error {
	m.bytes += int64(len(read))
	if !m.binary {
		m.values += int64(bytes.Count(read, openObject) + bytes.Count(read, openArray))
	}
	switch {
	case m.bytes > m.bytesAllowed:
		return m.record(ExceededError{Bound: m.size, Subject: subjectOf(m.subject), Limit: m.bytesAllowed, Measured: m.bytesAllowed + 1, Unit: "bytes"})
	case m.values > m.valuesAllowed:
		return m.record(ExceededError{Bound: Values, Subject: subjectOf(m.subject), Limit: m.valuesAllowed, Measured: m.valuesAllowed + 1, Unit: "JSON objects and arrays"})
	}
	return nil
}

func (m *meter) reset() { m.bytes, m.values = 0, 0 }

var openObject, openArray = []byte("{"), []byte("[")
