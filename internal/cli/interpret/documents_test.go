package interpret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestParseDocuments(t *testing.T) {
	type found struct {
		number int
		value  any
	}
	tests := map[string]struct {
		source, text string
		want         []found
		err          string
	}{
		"one document":                      {text: "a: 1\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"an integer of 64 bits":             {text: "a: 9007199254740993\n", want: []found{{1, map[string]any{"a": int64(9007199254740993)}}}},
		"two documents":                     {text: "a: 1\n---\nb: 2\n", want: []found{{1, map[string]any{"a": int64(1)}}, {2, map[string]any{"b": int64(2)}}}},
		"comments and empty documents":      {text: "# x\n---\n\n# y\na: 1\n---\n--- \n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"a separator with content":          {text: "--- {a: 1}\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"a marker in a script":              {text: "a: |\n  ---@name\n", want: []found{{1, map[string]any{"a": "---@name\n"}}}},
		"flow style":                        {text: "{a: 1}\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"JSON":                              {text: "{\"a\": 1}\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"several values in JSON":            {text: "{\"a\": 1}\n\n{\"b\": 2}\n", want: []found{{1, map[string]any{"a": int64(1)}}, {2, map[string]any{"b": int64(2)}}}},
		"a list":                            {text: "[{\"a\": 1}]", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"nothing":                           {text: "\n", err: "f.yaml is empty"},
		"an error in the second document":   {text: "a: 1\n---\nb: 1\nc: d: e\n", err: "f.yaml: yaml: line 4: mapping values are not allowed"},
		"a key twice":                       {text: "a: 1\n---\nb: 1\nb: 2\n", err: `line 4: key "b" already set`},
		"an error in JSON":                  {source: "f.json", text: "{\"a\": 1,\n\"b\": ]}", err: "f.json: line 2: invalid character"},
		"an error in the second JSON value": {source: "f.json", text: "{\"a\": 1}\n{\"b\":\n]}", err: "f.json: line 3: invalid character"},
		"JSON that ends":                    {source: "f.json", text: "{\"a\":\n", err: "f.json: unexpected EOF"},
		"a text with tabs":                  {text: "a:\n\t- b\n", err: "line 2: found character that cannot start any token"},
		"bytes that are no text":            {text: "\xff\xfe\x00", err: "f.yaml: "},
		"text after a document":             {text: "a: 1\n...\nb: 2\n", err: "text follows the document of line 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.source == "" {
				test.source = "f.yaml"
			}
			documents, err := parseDocuments(test.source, []byte(test.text))
			if !matches(err, test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			var got []found
			for _, document := range documents {
				got = append(got, found{document.number, document.value})
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(found{})); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

// matches reports whether the error contains the text. An empty text means no error.
func matches(err error, text string) bool {
	if text == "" || err == nil {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}

func FuzzParseDocuments(f *testing.F) {
	for _, text := range []string{"a: 1\n---\nb: 2\n", "{\"a\": 1}{}", "--- |\n a", "---\r\na: b", "&a [*a]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := parseDocuments("f.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, document := range documents {
			_, _ = document.customization()
			_ = document.decode(&workv1alpha2.AggregatedStatusItem{})
		}
	})
}
