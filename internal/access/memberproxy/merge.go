package memberproxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// jsonFields are the fields of a JSON object, decoded one level deep.
type jsonFields = map[string]json.RawMessage

const (
	// elementOverhead is the memory, in bytes, that a list element needs in addition to its text.
	// The text may be as short as {}.
	elementOverhead = 256
	// maxFields limits the number of fields of an object, because each field needs far more memory
	// than its text. The annotations of an object have at most 256 KiB.
	maxFields = 10_000
)

var errTooManyFields = fmt.Errorf("an object has more than %d fields", maxFields)

// mergedList merges the lists of several clusters. A list contains objects, or is a table that
// kubectl prints.
type mergedList struct {
	// first is the first list. The merged list has its fields, except for the elements.
	first jsonFields
	// key is the field with the elements: items, or the rows of a table.
	key      string
	elements []json.RawMessage
}

// add appends the list of a cluster and annotates each element with the name of the cluster. If
// the response is invalid, add changes nothing. add first calls reserve with the memory that the
// elements need in addition to their text.
func (m *mergedList) add(cluster string, body []byte, reserve func(bytes int64) error) error {
	response, err := parseFields(body)
	if err != nil {
		return fmt.Errorf("parsing the list of cluster %q: %w", cluster, err)
	}
	key := "items"
	if string(response["kind"]) == `"Table"` {
		key = "rows"
	}
	if m.first != nil && m.key != key {
		return fmt.Errorf("cluster %q is omitted: its response has another format than those of other clusters", cluster)
	}
	if err := reserve(elementOverhead * int64(countElements(response[key]))); err != nil {
		return err
	}
	elements, err := annotateElements(response[key], key, cluster)
	if err != nil {
		return fmt.Errorf("parsing the list of cluster %q: %w", cluster, err)
	}
	if m.first == nil {
		m.first, m.key = response, key
	}
	m.elements = append(m.elements, elements...)
	return nil
}

// annotateElements returns the elements with an annotation that contains the name of their
// cluster.
func annotateElements(raw json.RawMessage, key, cluster string) ([]json.RawMessage, error) {
	var elements []json.RawMessage
	if raw == nil {
		return nil, fmt.Errorf("the list has no %s", key)
	}
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	path := []string{"metadata", "annotations", clusterv1alpha1.QueryFromClusterAnnotation}
	if key == "rows" {
		path = append([]string{"object"}, path...)
	}
	name, err := json.Marshal(cluster)
	if err != nil {
		return nil, err
	}
	for i := range elements {
		if elements[i], err = setField(elements[i], name, path...); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", key, i, err)
		}
	}
	return elements, nil
}

// setField returns a copy of a JSON object with the value at a path. It creates missing objects in
// the path.
func setField(object, value json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	parts, err := parseFields(object)
	if err != nil {
		return nil, err
	}
	if parts == nil {
		parts = jsonFields{}
	}
	inner, err := setField(parts[path[0]], value, path[1:]...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path[0], err)
	}
	parts[path[0]] = inner
	return json.Marshal(parts)
}

// parseFields decodes the fields of a JSON object. It returns nil if the text is empty.
func parseFields(object json.RawMessage) (jsonFields, error) {
	if len(object) == 0 {
		return nil, nil // see the comment of the function
	}
	if countElements(object) > maxFields {
		return nil, errTooManyFields
	}
	var parts jsonFields
	if err := json.Unmarshal(object, &parts); err != nil {
		return nil, err
	}
	return parts, nil
}

// countElements returns an upper bound for the number of elements of a JSON array, or of fields of
// a JSON object. It allocates no memory.
func countElements(text []byte) int {
	depth, commas := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 1 {
				commas++
			}
		}
	}
	return commas + 1
}

// writeTo writes the merged list without copying it. It removes the continue token, because the
// list is complete.
func (m *mergedList) writeTo(to io.Writer) error {
	if m.first == nil {
		return errors.New("no cluster has returned a list")
	}
	metadata, err := parseFields(m.first["metadata"])
	if errors.Is(err, errTooManyFields) {
		metadata = jsonFields{}
	}
	if metadata != nil {
		delete(metadata, "continue")
		delete(metadata, "remainingItemCount")
		if m.first["metadata"], err = json.Marshal(metadata); err != nil {
			return err
		}
	}
	delete(m.first, m.key)
	head, err := json.Marshal(m.first)
	if err != nil {
		return err
	}
	key, err := json.Marshal(m.key)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(to, 64<<10)
	separator := ","
	if len(m.first) == 0 {
		separator = ""
	}
	// Ignore the error, because the writer returns it again in Flush.
	_, _ = fmt.Fprintf(out, "%s%s%s:[", bytes.TrimSuffix(head, []byte("}")), separator, key)
	for i, element := range m.elements {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(element)
		m.elements[i] = nil
	}
	_, _ = out.WriteString("]}")
	return out.Flush()
}
