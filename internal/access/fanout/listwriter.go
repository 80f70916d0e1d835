package fanout

import (
	"bytes"
	"errors"
	"net/http"
	"slices"

	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/domain/jsonedit"
)

// FlushBytes is the number of bytes that are written to a client at once, so that a disconnected client is
// noticed early.
const FlushBytes = 64 << 10

// ErrMixedFormats means that a page cannot be merged, because it has another format than the list.
var ErrMixedFormats = errors.New("its list has another format than those of the other clusters: it does not support tables of this kind")

// ListWriter writes the merged list of many clusters, object by object. It holds the first objects back, so
// that an error or a warning can still become a part of the header.
type ListWriter struct {
	Style
	Response http.ResponseWriter
	Warnings Warnings
	// HeldBytes is the size up to which the list is held back.
	HeldBytes int
	// IsYAML means that the list is converted to YAML. Then it is held back completely, and must not exceed
	// MaxYAMLBytes.
	IsYAML       bool
	MaxYAMLBytes int

	buffer bytes.Buffer
	// first determines the type of the list, and the columns of a table. It is nil before Start.
	first   *Page
	isSent  bool
	items   int
	scratch []byte
}

// Start begins the list with the type of a page, unless the list is started.
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

// WritePage writes the objects of a page whose namespace includes accepts, and returns the number of all
// objects of the page. A nil includes accepts every namespace. If the error is ErrMixedFormats, the list
// is unchanged. Any other error breaks the list.
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

// send sends the header, unless it is sent, and the content of the buffer.
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

// Finish ends the list with its resourceVersion and the continue token of the next page, if any.
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

// IsSent reports whether the header and a part of the list are sent, so that warnings come too late.
func (l *ListWriter) IsSent() bool { return l.isSent }

// Abort returns err, if it can still be sent to the client. If a part of the list is sent, it closes the
// connection instead, so that the client does not take the part for the whole list.
func (l *ListWriter) Abort(err error) error {
	if err != nil && l.isSent {
		panic(http.ErrAbortHandler)
	}
	return err
}
