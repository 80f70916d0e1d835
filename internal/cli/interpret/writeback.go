package interpret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/equality"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/jsonedit"
	"karmada.io/karmada/internal/pki"
)

// parseEditedFile returns the only customization in a file. It returns an error for a list, because writeEditedFile changes
// fields at the top level of the file.
func parseEditedFile(path string, text []byte) (*configv1alpha1.ResourceInterpreterCustomization, error) {
	documents, err := parseDocuments(path, text)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%s has %d objects: --edit takes a file with exactly one %s", path, len(documents), kindName)
	}
	if documents[0].isItem {
		return nil, fmt.Errorf("%s has a list: --edit takes a file with exactly one %s", path, kindName)
	}
	return documents[0].customization()
}

// writeEditedFile writes the fields that differ between original and edited to the file, and keeps all other fields, their order
// and comments. read is the content of the file before the edit; if the file has changed since, writeEditedFile returns an error.
func writeEditedFile(path string, read []byte, original, edited *configv1alpha1.ResourceInterpreterCustomization) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	current, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(current, read) {
		return fmt.Errorf("%s changed while you edited it: edit it again", path)
	}
	apply := changeYAML
	if _, err := parseJSON(current); err == nil {
		apply = changeJSON
	}
	text, err := apply(current, listChanges(original, edited))
	if err != nil {
		return fmt.Errorf("changing %s: %w", path, err)
	}
	if written, err := parseEditedFile(path, text); err != nil || !equality.Semantic.DeepEqual(written.Spec, edited.Spec) {
		return errors.Join(fmt.Errorf("changing %s: the format of the file is not supported", path), err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return errors.Join(pki.WriteFile(path, text, info.Mode()), os.Chmod(path, info.Mode()))
}

// change sets the text at a path of keys. If the text is empty, it removes the value.
type change struct {
	path []string
	text string
}

func listChanges(original, edited *configv1alpha1.ResourceInterpreterCustomization) (changes []change) {
	before, after := original.Spec, edited.Spec
	if before.Target.APIVersion != after.Target.APIVersion {
		changes = append(changes, change{[]string{"spec", "target", "apiVersion"}, after.Target.APIVersion})
	}
	if before.Target.Kind != after.Target.Kind {
		changes = append(changes, change{[]string{"spec", "target", "kind"}, after.Target.Kind})
	}
	for _, operation := range interpreter.ScriptOperations() {
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

func changeJSON(text []byte, changes []change) (_ []byte, err error) {
	for _, change := range changes {
		if change.text == "" {
			text, err = jsonedit.Remove(nil, text, change.path...)
		} else if quoted, encodeErr := encodeJSON(change.text); encodeErr == nil {
			text, err = jsonedit.Set(nil, text, quoted, change.path...)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// changeYAML changes the nodes of the documents, because nodes keep comments and the order of keys.
func changeYAML(text []byte, changes []change) ([]byte, error) {
	var encoded bytes.Buffer
	encoder := yamlv3.NewEncoder(&encoded)
	encoder.SetIndent(2)
	for decoder := yamlv3.NewDecoder(bytes.NewReader(text)); ; {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			err := encoder.Close()
			return encoded.Bytes(), err
		}
		if err != nil {
			return nil, err
		}
		if len(document.Content) == 1 && document.Content[0].Kind == yamlv3.MappingNode {
			for _, change := range changes {
				setNode(document.Content[0], change.path, change.text)
			}
		}
		if err := encoder.Encode(&document); err != nil {
			return nil, err
		}
	}
}

// setNode sets the text at a path of keys below the mapping, and creates missing mappings. An empty text removes the value.
func setNode(mapping *yamlv3.Node, path []string, text string) {
	if len(mapping.Content) == 0 {
		mapping.Style &^= yamlv3.FlowStyle // the braces of {} would stay around new fields
	}
	at := 0
	for at < len(mapping.Content) && mapping.Content[at].Value != path[0] {
		at += 2
	}
	isMissing, isLast := at == len(mapping.Content), len(path) == 1
	if isLast && text == "" {
		if !isMissing {
			mapping.Content = append(mapping.Content[:at:at], mapping.Content[at+2:]...)
		}
		return
	}
	if isMissing {
		key := &yamlv3.Node{}
		key.SetString(path[0])
		mapping.Content = append(mapping.Content, key, &yamlv3.Node{})
	}
	value := mapping.Content[at+1]
	comments := yamlv3.Node{HeadComment: value.HeadComment, LineComment: value.LineComment, FootComment: value.FootComment}
	if isLast {
		*value = comments
		value.SetString(text)
		return
	}
	if value.Kind != yamlv3.MappingNode {
		*value = comments
		value.Kind = yamlv3.MappingNode
	}
	setNode(value, path[1:], text)
}
