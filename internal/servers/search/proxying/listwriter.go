package proxying

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"

	"karmada.io/karmada/internal/domain/clusterjson"

	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/rawjson"
)

// chunk is the number of bytes that are written at once.
const chunk = 64 << 10

// errMixedFormats is the error of a page that has another format than the list.
var errMixedFormats = errors.New("its list has another format than those of the other clusters: it does not support tables of this kind")

// listWriter writes a list or a table. It writes the objects as they come, and holds the first ones
// back, so that an error or a warning can still become a part of the header.
type listWriter struct {
	*request
	buffer bytes.Buffer
	// isStarted means that the type of the list is written. isSent means that the header is
	// sent.
	isStarted, isSent bool
	isTable           bool
	items             int
	scratch           []byte
	// columns are the names of the columns of a table.
	columns []string
}

func newListWriter(r *request) *listWriter { return &listWriter{request: r} }

// start begins the list with the type of the first page.
func (l *listWriter) start(kind, apiVersion string, columns []byte) {
	l.isStarted, l.isTable = true, kind == "Table"
	l.buffer.WriteString(`{"kind":`)
	l.buffer.Write(rawjson.Quote(kind))
	l.buffer.WriteString(`,"apiVersion":`)
	l.buffer.Write(rawjson.Quote(apiVersion))
	if l.isTable {
		l.buffer.WriteString(`,"columnDefinitions":`)
		l.buffer.Write(clusterjson.WithClusterColumn(columns))
		l.buffer.WriteString(`,"rows":[`)
		return
	}
	l.buffer.WriteString(`,"items":[`)
}

// writePage writes the objects of a page of a cluster. It returns the number of objects of the page.
func (l *listWriter) writePage(p *participant, from *clusterjson.Page) (count int64, err error) {
	columns, err := clusterjson.ColumnNames(from.Columns)
	if err != nil {
		return 0, err
	}
	if !l.isStarted {
		l.start(from.Kind, from.APIVersion, from.Columns)
		l.columns = columns
	}
	if l.isTable != from.IsTable() {
		return 0, errMixedFormats
	}
	isReordered := l.isTable && !slices.Equal(columns, l.columns)
	err = rawjson.EachElement(from.Items, func(item []byte) error {
		included, err := p.includesItem(from, item)
		if included && isReordered {
			item, err = clusterjson.ReorderRow(item, columns, l.columns)
		}
		if err != nil {
			return err
		}
		if included {
			if l.scratch, err = l.rewrite(l.scratch[:0], item, p.cluster); err != nil {
				return err
			}
			err = l.writeItem(l.scratch)
		}
		count++
		return err
	})
	return count, err
}

// rewrite appends to dst an object or row with the name of its cluster.
func (l *listWriter) rewrite(dst, item []byte, cluster string) ([]byte, error) {
	if l.isTable {
		return clusterjson.RewriteRow(dst, item, cluster)
	}
	return clusterjson.Annotate(dst, item, cluster)
}

// includesItem reports whether the registries let the proxy show an object of a page.
func (p *participant) includesItem(from *clusterjson.Page, item []byte) (bool, error) {
	if p.only == nil {
		return true, nil
	}
	namespace, err := from.NamespaceOf(item)
	return err == nil && p.includes(namespace), err
}

// writeItem writes one object of the list.
func (l *listWriter) writeItem(item []byte) error {
	if l.items > 0 {
		l.buffer.WriteByte(',')
	}
	l.items++
	l.buffer.Write(item)
	switch {
	case l.format.isYAML:
		if int64(l.buffer.Len()) > l.limits.PageBytes {
			return newUnavailable("the list exceeds %d bytes, which is the limit for YAML: use JSON, or set a limit", l.limits.PageBytes)
		}
	case l.isSent && l.buffer.Len() >= chunk, l.buffer.Len() >= l.limits.HeldBytes:
		return l.send()
	}
	return nil
}

// send sends the header, and what is in the buffer.
func (l *listWriter) send() error {
	if !l.isSent {
		l.isSent = true
		l.warnings.write(l.w)
		l.w.Header().Set("Content-Type", jsonMediaType)
		l.w.WriteHeader(http.StatusOK)
	}
	return l.writeAll(l.buffer.Next(l.buffer.Len()))
}

// writeAll writes a text in chunks, so that a client that is gone is noticed early. The timeout of
// requests limits how long the client may take to read.
func (l *listWriter) writeAll(text []byte) error {
	for len(text) > 0 {
		n, err := l.w.Write(text[:min(chunk, len(text))])
		if err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// finish ends the list with its metadata.
func (l *listWriter) finish(version combinedversion.Version, token string) error {
	if !l.isStarted {
		l.start("List", "v1", nil)
	}
	l.buffer.WriteString(`],"metadata":{"resourceVersion":`)
	l.buffer.Write(rawjson.Quote(version.String()))
	if token != "" {
		l.buffer.WriteString(`,"continue":`)
		l.buffer.Write(rawjson.Quote(token))
	}
	l.buffer.WriteString("}}")
	if l.format.isYAML {
		return l.finishYAML()
	}
	if err := l.send(); err != nil {
		return l.abort(err)
	}
	return nil
}

func (l *listWriter) finishYAML() error {
	text, err := yaml.JSONToYAML(l.buffer.Bytes())
	if err != nil {
		return newUnavailable("converting the list to YAML: %v", err)
	}
	l.warnings.write(l.w)
	l.isSent = true
	l.w.Header().Set("Content-Type", yamlMediaType)
	l.w.WriteHeader(http.StatusOK)
	_ = l.writeAll(text)
	return nil
}

// abort returns the error of a list whose header is not sent. If it is sent, abort closes the
// connection, so that the client does not take the part for the whole list.
func (l *listWriter) abort(err error) error {
	if !l.isSent {
		if isStatus(err) || errors.Is(err, context.Canceled) {
			return err
		}
		return newUnavailable("%v", err)
	}
	panic(http.ErrAbortHandler)
}
