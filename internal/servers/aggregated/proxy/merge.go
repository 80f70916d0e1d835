package proxy

import (
	"encoding/json"
	"errors"
	"fmt"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// fields are those of a JSON object, read no deeper than needed.
type fields = map[string]json.RawMessage

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
// now on where it is from. An answer that cannot be understood changes nothing.
func (l *list) add(cluster string, body []byte) error {
	var answer fields
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the list of cluster %q: %w", cluster, err)
	}
	key := "items"
	if string(answer["kind"]) == `"Table"` {
		key = "rows"
	}
	if l.first != nil && l.key != key {
		return fmt.Errorf("cluster %q is left out: it answers in another form than the others", cluster)
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
	var parts fields
	if len(object) > 0 {
		if err := json.Unmarshal(object, &parts); err != nil {
			return nil, err
		}
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

// encode writes the list of all. It is complete, so that nothing remains to be
// continued.
func (l *list) encode() ([]byte, error) {
	if l.first == nil {
		return nil, errors.New("no cluster has answered")
	}
	if l.elements == nil {
		l.elements = []json.RawMessage{}
	}
	all, err := json.Marshal(l.elements)
	if err != nil {
		return nil, err
	}
	l.first[l.key] = all
	var metadata fields
	if err := json.Unmarshal(l.first["metadata"], &metadata); err == nil && metadata != nil {
		delete(metadata, "continue")
		delete(metadata, "remainingItemCount")
		if l.first["metadata"], err = json.Marshal(metadata); err != nil {
			return nil, err
		}
	}
	return json.Marshal(l.first)
}
