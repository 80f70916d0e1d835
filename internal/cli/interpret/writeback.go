package interpret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/equality"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter/customization"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// yamlIndent is the number of spaces of one level in YAML.
const yamlIndent = 2

// editedFile is a file with the customization that is edited.
type editedFile struct {
	path string
	// text is the content before the edit.
	text []byte
}

// openEditedFile reads the file. It returns an error if the file has anything else than one
// customization.
func (o *options) openEditedFile(ctx context.Context, path string) (editedFile, source, error) {
	text, err := o.readText(ctx, path)
	if err != nil {
		return editedFile{}, source{}, err
	}
	read, err := parseEdited(path, text)
	return editedFile{path: path, text: text}, read, err
}

// parseEdited returns the only customization of a file.
func parseEdited(path string, text []byte) (source, error) {
	documents, err := parseDocuments(path, text)
	if err != nil {
		return source{}, err
	}
	if len(documents) != 1 {
		return source{}, fmt.Errorf("%s has %d objects: --edit takes a file with exactly one %s", path, len(documents), kindName)
	}
	object, err := documents[0].object()
	if err != nil {
		return source{}, err
	}
	if object.IsList() {
		return source{}, fmt.Errorf("%s has a list: --edit takes a file with exactly one %s", path, kindName)
	}
	return documents[0].customization(object)
}

// write changes the fields of the file that differ between the customizations, and keeps all others
// with their order and comments.
func (f editedFile) write(original, edited *configv1alpha1.ResourceInterpreterCustomization) error {
	current, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	if !bytes.Equal(current, f.text) {
		return fmt.Errorf("%s changed while you edited it: edit it again", f.path)
	}
	changes := changesOf(original, edited)
	apply := changeYAML
	if _, err := parseJSON(f.path, f.text); err == nil {
		apply = changeJSON
	}
	text, err := apply(f.text, changes)
	if err != nil {
		return fmt.Errorf("changing %s: %w", f.path, err)
	}
	written, err := parseEdited(f.path, text)
	if err != nil {
		return fmt.Errorf("changing %s: %w", f.path, err)
	}
	if !equality.Semantic.DeepEqual(written.Spec, edited.Spec) {
		return fmt.Errorf("changing %s: the format of the file is not supported", f.path)
	}
	return replaceFile(f.path, text)
}

// replaceFile replaces the content of a file in one step, so that an interrupt leaves a complete
// file.
func replaceFile(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(text)
	if err := errors.Join(err, temporary.Chmod(info.Mode().Perm()), temporary.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(temporary.Name(), path)
}

// change sets the text at a path of keys. If the text is empty, it removes the value.
type change struct {
	path []string
	text string
}

func changesOf(original, edited *configv1alpha1.ResourceInterpreterCustomization) (changes []change) {
	before, after := original.Spec, edited.Spec
	if before.Target.APIVersion != after.Target.APIVersion {
		changes = append(changes, change{[]string{"spec", "target", "apiVersion"}, after.Target.APIVersion})
	}
	if before.Target.Kind != after.Target.Kind {
		changes = append(changes, change{[]string{"spec", "target", "kind"}, after.Target.Kind})
	}
	for _, operation := range customization.Operations() {
		text := operation.Script(&after.Customizations)
		if text == operation.Script(&before.Customizations) {
			continue
		}
		path := []string{"spec", "customizations", operation.Field}
		if text != "" {
			path = append(path, "luaScript")
		}
		changes = append(changes, change{path, text})
	}
	return changes
}

func changeJSON(text []byte, changes []change) (changed []byte, err error) {
	for _, each := range changes {
		if each.text == "" {
			changed, err = jsonedit.Remove(nil, text, each.path...)
		} else {
			changed, err = jsonedit.Set(nil, text, quote(each.text), each.path...)
		}
		if err != nil {
			return nil, err
		}
		text = changed
	}
	return text, nil
}

// quote returns a text as a JSON string. Unlike json.Marshal, it keeps the operators of scripts, such
// as <.
func quote(text string) []byte {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can always be encoded
	return bytes.TrimSpace(quoted.Bytes())
}

// changeYAML changes the nodes of the documents, because nodes keep comments and the order of keys.
func changeYAML(text []byte, changes []change) ([]byte, error) {
	var encoded bytes.Buffer
	encoder := yamlv3.NewEncoder(&encoded)
	encoder.SetIndent(yamlIndent)
	for decoder := yamlv3.NewDecoder(bytes.NewReader(text)); ; {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(document.Content) == 1 && document.Content[0].Kind == yamlv3.MappingNode {
			for _, each := range changes {
				changeNode(document.Content[0], each)
			}
		}
		if err := encoder.Encode(&document); err != nil {
			return nil, err
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return encoded.Bytes(), nil
}

// changeNode sets or removes the value at the path. It creates missing mappings.
func changeNode(mapping *yamlv3.Node, to change) {
	last := len(to.path) - 1
	for _, key := range to.path[:last] {
		at := indexOfKey(mapping, key)
		if at < 0 {
			at = len(mapping.Content)
			mapping.Content = append(mapping.Content, newScalar(key), &yamlv3.Node{Kind: yamlv3.MappingNode})
		}
		if next := mapping.Content[at+1]; next.Kind != yamlv3.MappingNode {
			*next = yamlv3.Node{Kind: yamlv3.MappingNode, HeadComment: next.HeadComment, LineComment: next.LineComment, FootComment: next.FootComment}
		}
		mapping = mapping.Content[at+1]
		mapping.Style &^= emptyFlow(mapping)
	}
	at := indexOfKey(mapping, to.path[last])
	switch {
	case to.text == "" && at >= 0:
		mapping.Content = append(mapping.Content[:at:at], mapping.Content[at+2:]...)
	case to.text == "":
	case at < 0:
		mapping.Content = append(mapping.Content, newScalar(to.path[last]), newScalar(to.text))
	default:
		value := newScalar(to.text)
		value.LineComment, value.FootComment = mapping.Content[at+1].LineComment, mapping.Content[at+1].FootComment
		mapping.Content[at+1] = value
	}
}

// emptyFlow returns the style to remove from a mapping: an empty mapping is written as {}, and would
// otherwise stay in this style when it gets fields.
func emptyFlow(mapping *yamlv3.Node) yamlv3.Style {
	if len(mapping.Content) == 0 {
		return yamlv3.FlowStyle
	}
	return 0
}

// indexOfKey returns the index of a key in the content of a mapping, or -1.
func indexOfKey(mapping *yamlv3.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// newScalar returns a string. A text with several lines is written as a block.
func newScalar(text string) *yamlv3.Node {
	node := &yamlv3.Node{}
	node.SetString(text)
	return node
}
