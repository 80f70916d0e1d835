package fanout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/jsonedit"
)

var (
	errNoJSON  = errors.New("the response is no JSON")
	errNoList  = errors.New("the response is no list")
	errNoCells = errors.New("a row of the table has no cells")
)

// clusterColumn is the definition of the table column that contains the cluster name. Its priority is
// 0, so that kubectl prints it even without -o wide, because an object's name alone does not identify
// the object.
var clusterColumn = []byte(`{"name":"Cluster","type":"string","format":"","description":"Cluster that has the object.","priority":0}`)

// Style specifies how merged objects name their clusters.
type Style struct {
	// Annotation is the annotation that contains each object's cluster name.
	Annotation string
	// HasClusterColumn means that tables also have a column with the cluster name.
	HasClusterColumn bool
}

// Page is one page of a cluster's list or table. All its objects can be merged.
type Page struct {
	Kind, APIVersion string
	// ResourceVersion is the list's version in the cluster. Continue is the next page's token, or
	// empty.
	ResourceVersion, Continue string

	cluster string
	// items is the JSON array of objects or table rows.
	items []byte
	// columns are the table's column definitions, or nil.
	columns     []byte
	columnNames []string
}

// maxColumns is the maximum number of columns of a table.
const maxColumns = 200

// columnMapping moves a row's cells to another table's columns.
type columnMapping struct {
	// positions contains each cell's new position, or -1 for a cell without a column.
	positions []int
	// count is the number of columns of the other table.
	count int
}

// ParsePage parses a cluster's response to a list request. It returns an error unless all objects in
// the page can be merged.
func (s Style) ParsePage(cluster string, body []byte) (*Page, error) {
	if !json.Valid(body) {
		return nil, errNoJSON
	}
	p := &Page{cluster: cluster}
	var metadata []byte
	fields := map[string]*[]byte{"metadata": &metadata, "items": &p.items, "rows": &p.items, "columnDefinitions": &p.columns}
	err := jsonedit.EachField(body, func(key string, value []byte) bool {
		switch key {
		case "kind":
			_ = json.Unmarshal(value, &p.Kind) // a value that is not a string counts as no kind
		case "apiVersion":
			_ = json.Unmarshal(value, &p.APIVersion)
		default:
			if field := fields[key]; field != nil {
				*field = value
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if string(p.columns) == "null" {
		p.columns = nil
	}
	if string(p.items) == "null" || p.IsTable() && p.items == nil {
		p.items = []byte("[]")
	}
	if p.Kind == "" || p.columns != nil && !p.IsTable() || !bytes.HasPrefix(p.items, []byte("[")) {
		return nil, errNoList
	}
	if p.ResourceVersion, err = jsonedit.GetString(metadata, "resourceVersion"); err == nil {
		p.Continue, err = jsonedit.GetString(metadata, "continue")
	}
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if err := p.readColumnNames(); err != nil {
		return nil, fmt.Errorf("columnDefinitions: %w", err)
	}
	return p, s.validateItems(p)
}

func (p *Page) readColumnNames() error {
	if p.columns == nil {
		return nil
	}
	return jsonedit.EachElement(p.columns, func(column []byte) error {
		name, err := jsonedit.GetString(column, "name")
		p.columnNames = append(p.columnNames, name)
		if len(p.columnNames) > maxColumns {
			return fmt.Errorf("the table has more than %d columns", maxColumns)
		}
		return err
	})
}

// validateItems returns an error unless all objects in the page can be merged.
func (s Style) validateItems(p *Page) error {
	var scratch []byte
	return jsonedit.EachElement(p.items, func(item []byte) (err error) {
		if scratch, err = s.rewriteItem(scratch[:0], item, p, nil); err == nil {
			_, err = p.namespaceOf(item)
		}
		return err
	})
}

// IsTable reports whether the page is a table.
func (p *Page) IsTable() bool { return p.Kind == "Table" }

// namespaceOf returns the namespace of the object or, in a table, of the row's object.
func (p *Page) namespaceOf(item []byte) (string, error) {
	if p.IsTable() {
		return jsonedit.GetString(item, "object", "metadata", "namespace")
	}
	return jsonedit.GetString(item, "metadata", "namespace")
}

// rewriteItem appends to dst a copy of an object or row that names its cluster. If mapping is not nil,
// it moves a row's cells.
func (s Style) rewriteItem(dst, item []byte, p *Page, mapping *columnMapping) ([]byte, error) {
	if p.IsTable() {
		return s.rewriteRow(dst, item, p.cluster, mapping)
	}
	return s.annotate(dst, item, p.cluster)
}

// annotate appends to dst a copy of the object with the annotation that contains its cluster name.
func (s Style) annotate(dst, object []byte, cluster string) ([]byte, error) {
	return jsonedit.Set(dst, object, jsonedit.Quote(cluster), "metadata", "annotations", s.Annotation)
}

// rewriteRow appends to dst a copy of a table row that names its cluster. If mapping is not nil, it
// moves the cells.
func (s Style) rewriteRow(dst, row []byte, cluster string, mapping *columnMapping) ([]byte, error) {
	cells, err := jsonedit.Get(row, "cells")
	if err != nil {
		return dst, err
	}
	if !bytes.HasPrefix(cells, []byte("[")) {
		return dst, errNoCells
	}
	if mapping != nil {
		if cells, err = mapping.moveCells(cells); err != nil {
			return dst, err
		}
	}
	if s.HasClusterColumn {
		if cells, err = jsonedit.Append(nil, cells, jsonedit.Quote(cluster)); err != nil {
			return dst, err
		}
	}
	object, err := jsonedit.Get(row, "object")
	if err != nil {
		return dst, err
	}
	if !bytes.HasPrefix(object, []byte("{")) {
		return jsonedit.Set(dst, row, cells, "cells")
	}
	if row, err = jsonedit.Set(nil, row, cells, "cells"); err != nil {
		return dst, err
	}
	return jsonedit.Set(dst, row, jsonedit.Quote(cluster), "object", "metadata", "annotations", s.Annotation)
}

// moveCells returns the cells at their new positions. Columns without a cell contain null.
func (m *columnMapping) moveCells(cells []byte) ([]byte, error) {
	moved := slices.Repeat([][]byte{[]byte("null")}, m.count)
	i := 0
	err := jsonedit.EachElement(cells, func(cell []byte) error {
		if i < len(m.positions) && m.positions[i] >= 0 {
			moved[m.positions[i]] = cell
		}
		i++
		return nil
	})
	return slices.Concat([]byte("["), bytes.Join(moved, []byte(",")), []byte("]")), err
}

// RewriteObject returns a copy of a cluster's object, or of a table that contains objects, that names
// the cluster and has a combined version. A Status stays unchanged.
func (s Style) RewriteObject(cluster string, body []byte) ([]byte, error) {
	kind, err := jsonedit.GetString(body, "kind")
	if err != nil || kind == "Status" {
		return body, err
	}
	version, err := jsonedit.GetString(body, "metadata", "resourceVersion")
	if err == nil && version != "" {
		body, err = WithVersion(nil, body, combinedversion.New(map[string]string{cluster: version}))
	}
	switch {
	case err != nil:
		return nil, err
	case kind == "Table":
		return s.RewriteTable(cluster, body)
	}
	return s.annotate(nil, body, cluster)
}

// WithVersion appends to dst a copy of an object or table with the given resourceVersion.
func WithVersion(dst, object []byte, version combinedversion.Version) ([]byte, error) {
	return jsonedit.Set(dst, object, jsonedit.Quote(version.String()), "metadata", "resourceVersion")
}

// RewriteTable returns a copy of a cluster's table in which each row names the cluster.
func (s Style) RewriteTable(cluster string, table []byte) ([]byte, error) {
	rows, err := jsonedit.Get(table, "rows")
	if err != nil || !bytes.HasPrefix(rows, []byte("[")) {
		return table, err
	}
	rewritten := []byte{'['}
	err = jsonedit.EachElement(rows, func(row []byte) error {
		if len(rewritten) > 1 {
			rewritten = append(rewritten, ',')
		}
		rewritten, err = s.rewriteRow(rewritten, row, cluster, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	if table, err = jsonedit.Set(nil, table, append(rewritten, ']'), "rows"); err != nil {
		return nil, err
	}
	columns, err := jsonedit.Get(table, "columnDefinitions")
	if err != nil || !bytes.HasPrefix(columns, []byte("[")) || !s.HasClusterColumn {
		return table, err
	}
	if columns, err = jsonedit.Append(nil, columns, clusterColumn); err != nil {
		return nil, err
	}
	return jsonedit.Set(nil, table, columns, "columnDefinitions")
}

// ToPartial appends to dst the object's metadata in the form of PartialObjectMetadata.
func ToPartial(dst, object []byte) ([]byte, error) {
	metadata, err := jsonedit.Get(object, "metadata")
	if err != nil {
		return dst, err
	}
	if metadata == nil {
		metadata = []byte("{}")
	}
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`...)
	return append(append(dst, metadata...), '}'), nil
}
