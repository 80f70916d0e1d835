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
	// object is true while nothing came of an answer that has to be an object, protobuf
	// if it may be one in protobuf.
	object, protobuf bool
	// binary is true for what is no JSON, and has no values to count.
	binary bool
	// size is the bound on bytes.
	size                        Bound
	bytesAllowed, valuesAllowed int64

	bytes  int64
	values values
	err    error
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
	if err := m.begin(read); err != nil {
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

// begin looks at the first byte of an answer. Some decoders go by it, and not by the
// media type: what begins in any other way they take for YAML.
func (m *meter) begin(read []byte) error {
	if !m.object {
		return nil
	}
	text := bytes.TrimLeft(read, " \t\r\n")
	if len(text) == 0 {
		return nil
	}
	m.object = false
	m.binary = m.protobuf && text[0] == protobufMark[0]
	if text[0] == '{' || m.binary {
		return nil
	}
	return m.record(ExceededError{Bound: Identity, Subject: subjectOf(m.subject), Detail: "the member answers with something that is not a JSON object"})
}

// count counts bytes up to the end of a JSON object or array, and reports whether one
// ended.
func (m *meter) count(read []byte) (counted int, ended bool, err error) {
	counted = len(read)
	if !m.binary {
		counted, ended = m.values.read(read)
	}
	m.bytes += int64(counted)
	switch {
	case m.bytes > m.bytesAllowed:
		err = m.record(ExceededError{Bound: m.size, Subject: subjectOf(m.subject), Limit: m.bytesAllowed, Measured: m.bytesAllowed + 1, Unit: "bytes"})
	case m.values.count > m.valuesAllowed:
		err = m.record(ExceededError{Bound: Values, Subject: subjectOf(m.subject), Limit: m.valuesAllowed, Measured: m.valuesAllowed + 1, Unit: "JSON objects, arrays and elements of arrays"})
	}
	return counted, ended, err
}

func (m *meter) isLarge() bool { return m.bytes > largeBytes || m.values.count > largeValues }

func (m *meter) reset() { m.bytes, m.values = 0, values{open: m.values.open[:0]} }
