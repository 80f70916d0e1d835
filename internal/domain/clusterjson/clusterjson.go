// Package clusterjson answers: how does the JSON that one cluster returns become a part of a response
// for all clusters?
//
// Each object gets an annotation that names its cluster. A table gets a column for the cluster. All
// other bytes stay as they are.
package clusterjson

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/rawjson"
)

// Page is one page of a list of a cluster, or of a table.
type Page struct {
	// Kind and APIVersion are those of the list.
	Kind, APIVersion string
	// ResourceVersion is the resourceVersion of the list in the cluster. Token is the continue token
	// of the next page. It is empty if there is none.
	ResourceVersion, Token string
	// Items is the raw array of the objects, or of the rows of a table.
	Items []byte
	// Columns are the raw column definitions of a table. Nil means that the page has none.
	Columns []byte
}

var (
	errNoList  = errors.New("the response is no list")
	errNoCells = errors.New("a row of the table has no cells")
)

// ParsePage parses the response of a member to a list.
func ParsePage(body []byte) (*Page, error) {
	if !rawjson.Valid(body) {
		return nil, errors.New("the response is no JSON")
	}
	p := &Page{}
	var metadata []byte
	err := rawjson.EachField(body, func(key string, value []byte) bool {
		switch key {
		case "kind":
			p.Kind = text(value)
		case "apiVersion":
			p.APIVersion = text(value)
		case "metadata":
			metadata = value
		case "items", "rows":
			p.Items = value
		case "columnDefinitions":
			p.Columns = value
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if p.Kind == "" || p.Columns != nil && !p.IsTable() {
		return nil, errNoList
	}
	if string(p.Items) == "null" || p.IsTable() && p.Items == nil {
		p.Items = []byte("[]")
	}
	if p.Items == nil || p.Items[0] != '[' {
		return nil, errNoList
	}
	if metadata != nil {
		if p.ResourceVersion, err = rawjson.GetString(metadata, "resourceVersion"); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		if p.Token, err = rawjson.GetString(metadata, "continue"); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
	}
	return p, nil
}

// IsTable reports whether the page is a table.
func (p *Page) IsTable() bool { return p.Kind == "Table" }

// text returns a raw string, or an empty string for another value.
func text(raw []byte) string {
	value, err := rawjson.GetString(append(append([]byte(`{"v":`), raw...), '}'), "v")
	if err != nil {
		return ""
	}
	return value
}

// Annotate appends to dst a copy of an object with the annotation that names its cluster.
func Annotate(dst, object []byte, cluster string) ([]byte, error) {
	return rawjson.Set(dst, object, rawjson.Quote(cluster), "metadata", "annotations", clusterv1alpha1.CachedFromClusterAnnotation)
}

// WithVersion appends to dst a copy of an object or table with another resourceVersion.
func WithVersion(dst, object []byte, version combinedversion.Version) ([]byte, error) {
	return rawjson.Set(dst, object, rawjson.Quote(version.String()), "metadata", "resourceVersion")
}

// VersionOf returns the combined version of one object of a cluster.
func VersionOf(cluster, resourceVersion string) combinedversion.Version {
	return combinedversion.New(map[string]string{cluster: resourceVersion})
}

// Identity is what a document says about the object that it contains.
type Identity struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
}

// ParseIdentity returns the identity of an object. Fields that the document does not have are empty.
func ParseIdentity(object []byte) (Identity, error) {
	if !rawjson.Valid(object) {
		return Identity{}, errors.New("it is no JSON")
	}
	var values [5]string
	for i, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "namespace"}, {"metadata", "name"}, {"metadata", "uid"}} {
		var err error
		if values[i], err = rawjson.GetString(object, path...); err != nil {
			return Identity{}, err
		}
	}
	return Identity{
		Kind: schema.FromAPIVersionAndKind(values[0], values[1]), Namespace: values[2], Name: values[3], UID: types.UID(values[4]),
	}, nil
}

// RewriteObject returns a copy of an object, or of a table with one row, that a cluster returned: with
// the annotation that names the cluster, and with a combined version.
func RewriteObject(body []byte, cluster string) ([]byte, error) {
	kind, err := rawjson.GetString(body, "kind")
	if err != nil {
		return nil, err
	}
	if kind == "Status" {
		return body, nil
	}
	version, err := rawjson.GetString(body, "metadata", "resourceVersion")
	if err != nil {
		return nil, err
	}
	if version != "" {
		if body, err = WithVersion(nil, body, VersionOf(cluster, version)); err != nil {
			return nil, err
		}
	}
	if kind == "Table" {
		return RewriteTable(body, cluster)
	}
	return Annotate(nil, body, cluster)
}

// RewriteTable returns a copy of a table with the column of the cluster, and with the annotation in
// each row.
func RewriteTable(body []byte, cluster string) ([]byte, error) {
	rows, err := rawjson.Get(body, "rows")
	if err != nil || len(rows) == 0 || rows[0] != '[' {
		return body, err
	}
	rewritten := []byte{'['}
	err = rawjson.EachElement(rows, func(row []byte) error {
		if len(rewritten) > 1 {
			rewritten = append(rewritten, ',')
		}
		rewritten, err = RewriteRow(rewritten, row, cluster)
		return err
	})
	if err != nil {
		return nil, err
	}
	if body, err = rawjson.Set(nil, body, append(rewritten, ']'), "rows"); err != nil {
		return nil, err
	}
	columns, err := rawjson.Get(body, "columnDefinitions")
	if err != nil || len(columns) == 0 || columns[0] != '[' {
		return body, err
	}
	return rawjson.Set(nil, body, WithClusterColumn(columns), "columnDefinitions")
}

// clusterColumn is the column of a table that names the cluster. Its priority is 0, so that kubectl also
// prints it without -o wide: the name of an object alone does not identify the object.
var clusterColumn = []byte(`{"name":"Cluster","type":"string","format":"","description":"Cluster that has the object.","priority":0}`)

// RewriteRow appends to dst a copy of a row of a table with a cell for the cluster. The object of the
// row, if it has one, gets the annotation.
func RewriteRow(dst, row []byte, cluster string) ([]byte, error) {
	cells, err := rawjson.Get(row, "cells")
	if err != nil {
		return dst, err
	}
	if len(cells) == 0 || cells[0] != '[' {
		return dst, errNoCells
	}
	object, err := rawjson.Get(row, "object")
	if err != nil {
		return dst, err
	}
	cells = appendElement(nil, cells, rawjson.Quote(cluster))
	if len(object) == 0 || object[0] != '{' {
		return rawjson.Set(dst, row, cells, "cells")
	}
	if row, err = rawjson.Set(nil, row, cells, "cells"); err != nil {
		return dst, err
	}
	return rawjson.Set(dst, row, rawjson.Quote(cluster), "object", "metadata", "annotations", clusterv1alpha1.CachedFromClusterAnnotation)
}

// WithClusterColumn returns the raw column definitions of a table with the column of the cluster.
func WithClusterColumn(columns []byte) []byte {
	if len(columns) == 0 || columns[0] != '[' {
		columns = []byte("[]")
	}
	return appendElement(nil, columns, clusterColumn)
}

// ColumnNames returns the names of raw column definitions.
func ColumnNames(columns []byte) ([]string, error) {
	var names []string
	if len(columns) == 0 || columns[0] != '[' {
		return nil, nil
	}
	err := rawjson.EachElement(columns, func(column []byte) error {
		name, err := rawjson.GetString(column, "name")
		names = append(names, name)
		return err
	})
	return names, err
}

// ReorderRow returns a row of a table whose columns are from, for a table whose columns are to. A cell of
// a column that the row does not have is null.
func ReorderRow(row []byte, from, to []string) ([]byte, error) {
	raw, err := rawjson.Get(row, "cells")
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 || raw[0] != '[' {
		return nil, errNoCells
	}
	cells := map[string][]byte{}
	i := 0
	err = rawjson.EachElement(raw, func(cell []byte) error {
		if i < len(from) {
			cells[from[i]] = cell
		}
		i++
		return nil
	})
	if err != nil {
		return nil, err
	}
	reordered := []byte{'['}
	for i, name := range to {
		if i > 0 {
			reordered = append(reordered, ',')
		}
		if cell, ok := cells[name]; ok {
			reordered = append(reordered, cell...)
		} else {
			reordered = append(reordered, "null"...)
		}
	}
	return rawjson.Set(nil, row, append(reordered, ']'), "cells")
}

// appendElement appends to dst a copy of a raw array with one more element.
func appendElement(dst, array, element []byte) []byte {
	end := len(array) - 1
	for end > 0 && array[end] != ']' {
		end--
	}
	dst = append(dst, array[:end]...)
	last := end - 1
	for last > 0 && (array[last] == ' ' || array[last] == '\n' || array[last] == '\t' || array[last] == '\r') {
		last--
	}
	if array[last] != '[' {
		dst = append(dst, ',')
	}
	dst = append(dst, element...)
	return append(dst, ']')
}

// NamespaceOf returns the namespace of an object, or of the object of a row.
func (p *Page) NamespaceOf(item []byte) (string, error) {
	if p.IsTable() {
		return rawjson.GetString(item, "object", "metadata", "namespace")
	}
	return rawjson.GetString(item, "metadata", "namespace")
}

// ToPartial appends to dst the metadata of an object as PartialObjectMetadata.
func ToPartial(dst, object []byte) ([]byte, error) {
	metadata, err := rawjson.Get(object, "metadata")
	if err != nil {
		return dst, err
	}
	if metadata == nil {
		metadata = []byte("{}")
	}
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`...)
	dst = append(dst, metadata...)
	return append(dst, '}'), nil
}
