package console

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrintFormats(t *testing.T) {
	result := Output{
		Header:        []string{"NAME", "STATE", "LOG"},
		Rows:          [][]string{{"east", "Ready", "/a"}, {"w", "NotReady", "/b"}},
		NarrowColumns: 2, ColumnGap: 3,
		Names:  []string{"east", "w"},
		Object: map[string]any{"clusters": []string{"east", "w"}},
	}
	tests := map[string]struct{ format, want string }{
		"a table":      {"", "NAME   STATE\neast   Ready\nw      NotReady\n"},
		"a wide table": {Wide, "NAME   STATE      LOG\neast   Ready      /a\nw      NotReady   /b\n"},
		"names":        {Name, "east\nw\n"},
		"JSON":         {JSON, "{\n    \"clusters\": [\n        \"east\",\n        \"w\"\n    ]\n}\n"},
		"YAML":         {YAML, "clusters:\n- east\n- w\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var format Format
			if err := format.Set(test.format); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := format.Print(&out, result); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetRejectsUnsupportedFormat(t *testing.T) {
	var format Format
	const want = `unsupported format "xml": use json, yaml, name, wide`
	if err := format.Set("xml"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNoColorWithoutTerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for name, style := range map[string]Style{"a buffer": NewStyle(&bytes.Buffer{}), "a file": NewStyle(file), "a terminal without colours": {terminal: true}} {
		if got := style.Good("a") + style.Bad("b") + style.Warn("c"); got != "abc" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	painted := Style{terminal: true, color: true}
	if got, want := painted.Bad("b"), "\033[31mb\033[0m"; got != want {
		t.Errorf("on a terminal: got %q, want %q", got, want)
	}
}
