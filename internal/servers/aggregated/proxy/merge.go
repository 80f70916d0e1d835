package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// fields are those of a JSON object, read no deeper than needed.
type fields = map[string]json.RawMessage

const (
	// elementBytes is what an element of a list takes beside its text, in bytes: the
	// text may be {} only.
	elementBytes = 256
	// maxFields is how many fields an object may have, as each takes far more memory than
	// its text. Annotations of an object are 256 KiB at most.
	maxFields = 10_000
)

var errFields = fmt.Errorf("an object has more than %d fields", maxFields)

// list is the lists of many clusters in one: of objects, or as the table that
// kubectl prints.
type list struct {
	// first is the first list, whose fields stay, apart from its elements.
	first fields
	// key is where the elements are: items, or the rows of a table.
	key      string
	elements []json.RawMessage
}

// add appends the list that a cluster answered with. Each of its elements says from
// now on where it is from. An answer that cannot be understood changes nothing. The
// memory that the elements need beside their text is taken first.
func (l *list) add(cluster string, body []byte, take func(bytes int64) error) error {
	answer, err := fieldsOf(body)
	if err != nil {
		return fmt.Errorf("reading the list of cluster %q: %w", cluster, err)
	}
	key := "items"
	if string(answer["kind"]) == `"Table"` {
		key = "rows"
	}
	if l.first != nil && l.key != key {
		return fmt.Errorf("cluster %q is left out: it answers in another form than the others", cluster)
	}
	if err := take(elementBytes * int64(width(answer[key]))); err != nil {
		return err
	}
	elements, err := marked(answer[key], key, cluster)
	if err != nil {
		return fmt.Errorf("reading the list of cluster %q: %w", cluster, err)
	}
	if l.first == nil {
		l.first, l.key = answer, key
	}
	l.elements = append(l.elements, elements...)
	return nil
}

// marked are elements with the name of their cluster in an annotation.
func marked(raw json.RawMessage, key, cluster string) ([]json.RawMessage, error) {
	var elements []json.RawMessage
	if raw == nil {
		return nil, fmt.Errorf("it has no %s", key)
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
		if elements[i], err = set(elements[i], name, path...); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", key, i, err)
		}
	}
	return elements, nil
}

// set returns a JSON object with the value at a path. What is missing on the way is
// made.
func set(object, value json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	parts, err := fieldsOf(object)
	if err != nil {
		return nil, err
	}
	if parts == nil {
		parts = fields{}
	}
	inner, err := set(parts[path[0]], value, path[1:]...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path[0], err)
	}
	parts[path[0]] = inner
	return json.Marshal(parts)
}

// fieldsOf reads the fields of a JSON object; there are none in an empty text.
func fieldsOf(object json.RawMessage) (fields, error) {
	if len(object) == 0 {
		return nil, nil //nolint:nilnil // as it says
	}
	if width(object) > maxFields {
		return nil, errFields
	}
	var parts fields
	if err := json.Unmarshal(object, &parts); err != nil {
		return nil, err
	}
	return parts, nil
}

// width counts the elements of a JSON array, or the fields of an object, without taking
// memory for them. It is at least their number.
func width(text []byte) int {
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

// write writes the list of all, without a copy. It is complete, so that nothing remains
// to be continued.
func (l *list) write(to io.Writer) error {
	if l.first == nil {
		return errors.New("no cluster has answered")
	}
	metadata, err := fieldsOf(l.first["metadata"])
	if errors.Is(err, errFields) {
		metadata = fields{}
	}
	if metadata != nil {
		delete(metadata, "continue")
		delete(metadata, "remainingItemCount")
		if l.first["metadata"], err = json.Marshal(metadata); err != nil {
			return err
		}
	}
	delete(l.first, l.key)
	head, err := json.Marshal(l.first)
	if err != nil {
		return err
	}
	key, err := json.Marshal(l.key)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(to, 64<<10)
	separator := ","
	if len(l.first) == 0 {
		separator = ""
	}
	// An error stays with the writer until it is flushed.
	_, _ = fmt.Fprintf(out, "%s%s%s:[", bytes.TrimSuffix(head, []byte("}")), separator, key)
	for i, element := range l.elements {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(element)
		l.elements[i] = nil
	}
	_, _ = out.WriteString("]}")
	return out.Flush()
}
