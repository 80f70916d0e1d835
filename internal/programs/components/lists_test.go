package components

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesNameAllComponents requires that each file that cannot read the table of components names
// every component. An error contains the text to add to the file.
func TestFilesNameAllComponents(t *testing.T) {
	files := map[string]string{
		"tools/image/programs.txt":                  "NAME\n",
		"internal/standalone/processnode/image.go":  `"NAME"`,
		"docs/image.md":                             "`NAME`",
		"docs/try-it.md":                            "`NAME`",
		"docs/components.md":                        "`NAME`",
		"docs/reference/README.md":                  "(flags/NAME.md)",
		"internal/programs/testdata/flags/NAME.txt": "",
		"cmd/NAME/main.go":                          "command.Main(programs.Program(",
		"docs/reference/flags/NAME.md":              "# NAME\n",
	}
	for file, text := range files {
		for _, component := range All(nil) {
			name := filepath.Join("..", "..", "..", strings.ReplaceAll(file, "NAME", component.Name))
			content, err := os.ReadFile(name)
			if err != nil {
				t.Errorf("component %s: %v", component.Name, err)
				continue
			}
			if want := strings.ReplaceAll(text, "NAME", component.Name); !strings.Contains(string(content), want) {
				t.Errorf("%s does not name component %s: add %s", strings.ReplaceAll(file, "NAME", component.Name), component.Name, strings.TrimSpace(want))
			}
		}
	}
}
