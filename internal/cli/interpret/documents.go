package interpret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	jsonutil "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// document is one value of a file in YAML or JSON.
type document struct {
	// source is the path or the URL of the file.
	source string
	// line is the number of the first line of the document in the file. The first line of a file has
	// the number 1.
	line int
	// value is the value of the document, with integers as int64.
	value any
}

// place returns where the document is, for error messages.
func (d document) place() string {
	if d.line > 1 {
		return fmt.Sprintf("%s, line %d", d.source, d.line)
	}
	return d.source
}

// readDocuments returns the documents of a file, at least one.
func (o *options) readDocuments(ctx context.Context, name string) ([]document, error) {
	text, err := o.readText(ctx, name)
	if err != nil {
		return nil, err
	}
	if isStandardInput(name) {
		name = "standard input"
	}
	documents, err := parseDocuments(name, text)
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("%s is empty", name)
	}
	return documents, nil
}

// parseDocuments parses a file. It leaves out empty documents.
func parseDocuments(source string, text []byte) ([]document, error) {
	documents, jsonErr := parseJSON(source, text)
	if jsonErr == nil {
		return documents, nil
	}
	documents = nil
	for _, part := range splitYAML(text) {
		value, err := parseYAML(part.text)
		if err != nil && strings.HasSuffix(source, ".json") {
			return nil, fmt.Errorf("%s: %w", source, jsonErr)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s", source, shiftLines(oneLine(err), part.line-1))
		}
		if value != nil {
			documents = append(documents, document{source: source, line: part.firstLine(), value: value})
		}
	}
	return documents, nil
}

var errNotJSON = errors.New("the file does not begin with { or [")

// parseJSON parses a file in JSON, which can have several values. Its errors name the line.
func parseJSON(source string, text []byte) (documents []document, err error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil, errNotJSON
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		end := int(decoder.InputOffset())
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			end = int(syntax.Offset)
		}
		var value any
		if err == nil {
			err = jsonutil.Unmarshal(raw, &value)
		}
		if err != nil {
			return nil, fmt.Errorf("json: line %d: %w", lineAt(text, end), err)
		}
		documents = append(documents, document{source: source, line: lineAt(text, end-len(raw)), value: value})
	}
}

// lineAt returns the number of the line at an offset.
func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// yamlPart is a part of a file between separators.
type yamlPart struct {
	text string
	// line is the number of the first line of the text.
	line int
}

// splitYAML splits a file at the lines that begin a document.
func splitYAML(text []byte) []yamlPart {
	parts := []yamlPart{{line: 1}}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if rest, ok := strings.CutPrefix(line, "---"); ok && (strings.TrimSpace(rest) == "" || rest[0] == ' ' || rest[0] == '\t') {
			parts = append(parts, yamlPart{line: number})
		}
		parts[len(parts)-1].text += line
	}
	return parts
}

// firstLine returns the number of the first line with content: no separator, comment or blank line.
func (p yamlPart) firstLine() int {
	number := p.line
	for line := range strings.Lines(p.text) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return number
		}
		number++
	}
	return p.line
}

// parseYAML returns nil for an empty document.
func parseYAML(text string) (any, error) {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	if err := checkEnd(text); err != nil {
		return nil, err
	}
	var value any
	err = jsonutil.Unmarshal(asJSON, &value)
	return value, err
}

// checkEnd returns an error if a text follows the document, because YAMLToJSONStrict ignores it.
func checkEnd(text string) error {
	decoder := yamlv3.NewDecoder(strings.NewReader(text))
	for range 2 {
		var node yamlv3.Node
		if err := decoder.Decode(&node); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return errors.New("text follows the document: separate documents with a line ---")
}

// lineNumber matches the number of a line in an error of the YAML parser.
var lineNumber = regexp.MustCompile(`\bline (\d+)`)

// shiftLines adds to the numbers of lines in an error of the YAML parser, because the parser knows
// only one part of the file.
func shiftLines(text string, lines int) string {
	return lineNumber.ReplaceAllStringFunc(text, func(match string) string {
		number, err := strconv.Atoi(lineNumber.FindStringSubmatch(match)[1])
		if err != nil {
			return match
		}
		return fmt.Sprintf("line %d", number+lines)
	})
}
