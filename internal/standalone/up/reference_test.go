package up_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/reference"
	"karmada.io/karmada/internal/standalone/up"
)

var update = flag.Bool("update", false, "write the reference page of karmada")

// TestReferencePageOfKarmada compares the reference page with the commands. The generator of the other
// pages does not link these commands, because they link kube-apiserver.
func TestReferencePageOfKarmada(t *testing.T) {
	root := &cobra.Command{Use: "karmada"}
	root.AddCommand(up.Commands()...)
	page := reference.CommandsPage(root, "`karmada` runs a control plane with members on this machine. [Try it](../../try-it.md) explains the commands.")
	path := filepath.Join("..", "..", "..", filepath.FromSlash(page.Path))
	if *update {
		if err := os.WriteFile(path, []byte(page.Content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), page.Content); diff != "" {
		t.Errorf("%s is outdated: run go test ./internal/standalone/up -run TestReferencePage -update (-page +commands):\n%s", page.Path, diff)
	}
}
