package fanout

import (
	"bytes"
	"errors"
	"net/http"
	"slices"

	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/domain/jsonedit"
)

// FlushBytes is the number of bytes after which the buffer is written to the client. It is small, so
// that a disconnected client is noticed early.
const FlushBytes = 64 << 10

// ErrMixedFormats means that a page cannot be merged, because its format differs from the list's
// format.
var ErrMixedFormats = errors.New("its list has another format than those of the other clusters: it does not support tables of this kind")

// ListWriter writes many clusters' merged list, object by object. It holds back the first objects,
// because the response's header, and thus an error or a warning, can be changed only until the first
// byte is sent.
type ListWriter struct {
	Style
	Response http.ResponseWriter
	Warnings Warnings
	// HeldBytes is the number of bytes up to which the list is held back.
	HeldBytes int
	// IsYAML means that the list is converted to YAML. Such a list is held back completely, and must
	// not exceed MaxYAMLBytes.
	IsYAML       bool
	MaxYAMLBytes int

	buffer bytes.Buffer
	// first determines the list's type and, for a table, its columns. It is nil before Start.
	first   *Page
	isSent  bool
	items   int
	scratch []byte
}

// Start begins the list with the given page's type, unless the list has already started.
func (l *ListWriter) Start(p *Page) error {
	if l.first != nil {
		return nil
	}
	l.first = p
	l.buffer.WriteString(`{"kind":`)
	l.buffer.Write(jsonedit.Quote(p.Kind))
	l.buffer.WriteString(`,"apiVersion":`)
	l.buffer.Write(jsonedit.Quote(p.APIVersion))
	if !p.IsTable() {
		l.buffer.WriteString(`,"items":[`)
		return nil
	}
	columns := p.columns
	if columns == nil {
		columns = []byte("[]")
	}
	if l.HasClusterColumn {
		var err error
		if columns, err = jsonedit.Append(nil, columns, clusterColumn); err != nil {
			return err
		}
	}
	l.buffer.WriteString(`,"columnDefinitions":`)
	l.buffer.Write(columns)
	l.buffer.WriteString(`,"rows":[`)
	return nil
}

// WritePage writes the page's objects whose namespace includes accepts, and returns the number of all
// objects in the page. If includes is nil, it writes all objects. If the error is ErrMixedFormats, the
// list is unchanged. After any other error, the list is incomplete and must be aborted.
func (l *ListWriter) WritePage(p *Page, includes func(namespace string) bool) (count int64, err error) {
	if err := l.Start(p); err != nil {
		return 0, err
	}
	if l.first.IsTable() != p.IsTable() {
		return 0, ErrMixedFormats
	}
	var mapping *columnMapping
	if p.columns != nil && !bytes.Equal(p.columns, l.first.columns) {
		mapping = &columnMapping{count: len(l.first.columnNames)}
		for _, name := range p.columnNames {
			mapping.positions = append(mapping.positions, slices.Index(l.first.columnNames, name))
		}
	}
	err = jsonedit.EachElement(p.items, func(item []byte) (err error) {
		count++
		if includes != nil {
			if namespace, err := p.namespaceOf(item); err != nil || !includes(namespace) {
				return err
			}
		}
		if l.scratch, err = l.rewriteItem(l.scratch[:0], item, p, mapping); err != nil {
			return err
		}
		return l.WriteItem(l.scratch)
	})
	return count, err
}

// WriteItem writes one object or row unchanged.
func (l *ListWriter) WriteItem(item []byte) error {
	if l.items > 0 {
		l.buffer.WriteByte(',')
	}
	l.items++
	l.buffer.Write(item)
	switch {
	case l.IsYAML && l.buffer.Len() > l.MaxYAMLBytes:
		return NewUnavailableError("the list exceeds %d bytes, which is the limit for YAML: use JSON, or set a limit", l.MaxYAMLBytes)
	case !l.IsYAML && (l.isSent && l.buffer.Len() >= FlushBytes || l.buffer.Len() >= l.HeldBytes):
		return l.send(JSON)
	}
	return nil
}

// send sends the header, unless it has already been sent, and the buffer's content.
func (l *ListWriter) send(mediaType string) error {
	if !l.isSent {
		l.isSent = true
		l.Warnings.WriteTo(l.Response.Header())
		l.Response.Header().Set("Content-Type", mediaType)
		l.Response.WriteHeader(http.StatusOK)
	}
	for l.buffer.Len() > 0 {
		if _, err := l.Response.Write(l.buffer.Next(FlushBytes)); err != nil {
			return err
		}
	}
	return nil
}

// Finish ends the list with its resourceVersion and the next page's continue token, which may be empty.
func (l *ListWriter) Finish(resourceVersion, token string) error {
	if err := l.Start(&Page{Kind: "List", APIVersion: "v1"}); err != nil {
		return err
	}
	l.buffer.WriteString(`],"metadata":{"resourceVersion":`)
	l.buffer.Write(jsonedit.Quote(resourceVersion))
	if token != "" {
		l.buffer.WriteString(`,"continue":`)
		l.buffer.Write(jsonedit.Quote(token))
	}
	l.buffer.WriteString("}}")
	if !l.IsYAML {
		return l.send(JSON)
	}
	text, err := yaml.JSONToYAML(l.buffer.Bytes())
	if err != nil {
		return NewUnavailableError("converting the list to YAML: %v", err)
	}
	l.buffer = *bytes.NewBuffer(text)
	return l.send(YAML)
}

// IsSent reports whether the header and a part of the list have been sent, so that warnings can no
// longer be added.
func (l *ListWriter) IsSent() bool { return l.isSent }

// Abort returns err if it can still be sent to the client. If a part of the list has been sent, it
// closes the connection instead, so that the client does not take this part for the whole list.
func (l *ListWriter) Abort(err error) error {
	if err != nil && l.isSent {
		panic(http.ErrAbortHandler)
	}
	return err
}
