package interpret

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDocuments(t *testing.T) {
	type found struct {
		line  int
		value any
	}
	tests := map[string]struct {
		source, text string
		want         []found
		err          string
	}{
		"one document":                         {text: "a: 1\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"an integer of 64 bits":                {text: "a: 9007199254740993\n", want: []found{{1, map[string]any{"a": int64(9007199254740993)}}}},
		"two documents":                        {text: "a: 1\n---\nb: 2\n", want: []found{{1, map[string]any{"a": int64(1)}}, {3, map[string]any{"b": int64(2)}}}},
		"comments and empty documents":         {text: "# x\n---\n\n# y\na: 1\n---\n--- \n", want: []found{{5, map[string]any{"a": int64(1)}}}},
		"a separator with content":             {text: "--- {a: 1}\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"a marker in a script":                 {text: "a: |\n  ---@name\n", want: []found{{1, map[string]any{"a": "---@name\n"}}}},
		"flow style":                           {text: "{a: 1}\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"JSON":                                 {text: "{\"a\": 1}\n", want: []found{{1, map[string]any{"a": int64(1)}}}},
		"several values in JSON":               {text: "{\"a\": 1}\n\n{\"b\": 2}\n", want: []found{{1, map[string]any{"a": int64(1)}}, {3, map[string]any{"b": int64(2)}}}},
		"a list":                               {text: "[{\"a\": 1}]", want: []found{{1, []any{map[string]any{"a": int64(1)}}}}},
		"nothing":                              {text: "\n"},
		"an error in the second document":      {text: "a: 1\n---\nb: 1\nc: d: e\n", err: "f.yaml: yaml: line 4: mapping values are not allowed"},
		"a key twice":                          {text: "a: 1\n---\nb: 1\nb: 2\n", err: `line 4: key "b" already set`},
		"an error in JSON":                     {source: "f.json", text: "{\"a\": 1,\n\"b\": ]}", err: "f.json: json: line 2: invalid character"},
		"an error in the second JSON value":    {source: "f.json", text: "{\"a\": 1}\n{\"b\":\n]}", err: "f.json: json: line 3: invalid character"},
		"JSON that ends":                       {source: "f.json", text: "{\"a\":\n", err: "f.json: json: line"},
		"a text with tabs":                     {text: "a:\n\t- b\n", err: "line 2: found character that cannot start any token"},
		"bytes that are no text":               {text: "\xff\xfe\x00", err: "f.yaml: "},
		"YAML in a file that is named as JSON": {source: "f.json", text: "{a: 1}", want: []found{{1, map[string]any{"a": int64(1)}}}},
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
				got = append(got, found{document.line, document.value})
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
		lines := 1 + strings.Count(text, "\n")
		for _, document := range documents {
			if document.line < 1 || document.line > lines {
				t.Errorf("line %d of %d", document.line, lines)
			}
			_, _ = document.customizations()
			_, _ = document.items()
		}
	})
}

func TestDownload(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file.yaml":
			_, _ = fmt.Fprint(w, "a: 1\n")
		case "/large":
			_, _ = w.Write(make([]byte, maxFileSize+1))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	tests := map[string]struct{ url, want, err string }{
		"a file":                {url: server.URL + "/file.yaml", want: "a: 1\n"},
		"a file that is absent": {url: server.URL + "/absent", err: "/absent: the server responded 404 Not Found"},
		"a file that is large":  {url: server.URL + "/large", err: "the file is larger than 16 MiB"},
		"no server":             {url: "http://127.0.0.1:1/file.yaml", err: "downloading the file: "},
		"no URL":                {url: "http://[", err: "missing ']' in host"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := (&options{}).readText(t.Context(), test.url)
			if !matches(err, test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if string(text) != test.want {
				t.Errorf("text %q, want %q", text, test.want)
			}
		})
	}
}
