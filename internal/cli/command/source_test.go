package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestReadSource(t *testing.T) {
	const limit = 1 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file.yaml":
			_, _ = fmt.Fprint(w, "a: 1\n")
		case "/large":
			_, _ = w.Write(make([]byte, limit+1))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	directory := t.TempDir()
	file := filepath.Join(directory, "file.yaml")
	if err := os.WriteFile(file, []byte("b: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ source, want, err string }{
		"standard input":        {source: "-", want: "c: 3\n"},
		"a file":                {source: file, want: "b: 2\n"},
		"a file that is absent": {source: filepath.Join(directory, "absent"), err: "no such file or directory"},
		"a directory":           {source: directory, err: "is a directory"},
		"a URL":                 {source: server.URL + "/file.yaml", want: "a: 1\n"},
		"a URL without a file":  {source: server.URL + "/absent", err: "/absent: the server responded 404 Not Found"},
		"a large file":          {source: server.URL + "/large", err: "the file is larger than 1 MiB"},
		"no server":             {source: "http://127.0.0.1:1/file.yaml", err: "downloading the file: "},
		"an invalid URL":        {source: "http://[", err: "missing ']' in host"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program := &Program{IOStreams: genericiooptions.IOStreams{In: strings.NewReader("c: 3\n")}}
			content, err := program.ReadSource(t.Context(), test.source, limit)
			if string(content) != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("content %q and error %v, want %q and %q", content, err, test.want, test.err)
			}
		})
	}
}
