package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestDocsManifestsHaveDocumentedResults applies the manifests of each page in order, and
// checks the results that the page shows. It does not run in parallel, because some
// manifests affect all namespaces.
func TestDocsManifestsHaveDocumentedResults(t *testing.T) {
	pages := map[string]struct {
		manifests, outcomes int // minimum numbers
	}{
		"propagate.md":    {6, 1},
		"override.md":     {10, 5},
		"dependencies.md": {7, 4},
	}
	for page, want := range pages {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", page))
			if err != nil {
				t.Fatal(err)
			}
			// Each page has a separate namespace, so that pages do not affect each other.
			space := strings.TrimSuffix(page, ".md")
			blocks := codeBlock.FindAllStringSubmatch(strings.ReplaceAll(string(text), "shop", "shop-"+space), -1)
			var manifests, outcomes int
			for n, block := range blocks {
				switch language, content := block[1], block[2]; {
				case language == "yaml":
					manifests += applyManifests(t, content)
				case language == "console" && n > 0 && blocks[n-1][1] == "yaml":
					outcomes += checkValues(t, content)
				}
			}
			if manifests < want.manifests || outcomes < want.outcomes {
				t.Errorf("found %d manifests and %d outcomes, want at least %d and %d", manifests, outcomes, want.manifests, want.outcomes)
			}
		})
	}
}

// applyManifests creates or updates the manifests in the control plane, and returns their
// number.
func applyManifests(t *testing.T, text string) int {
	t.Helper()
	documents := strings.Split(text, "\n---\n")
	for _, document := range documents {
		manifest := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &manifest.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		stored := manifest.DeepCopy()
		err := shared.karmada.Create(t.Context(), stored, client.FieldValidation("Strict"))
		switch {
		case err == nil:
			t.Cleanup(func() {
				if err := shared.karmada.Delete(context.WithoutCancel(t.Context()), stored); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			})
		case apierrors.IsAlreadyExists(err):
			updateObject(t, stored, func(have *unstructured.Unstructured) { have.Object["spec"] = manifest.Object["spec"] })
		default:
			t.Fatalf("%v from:\n%s", err, document)
		}
	}
	return len(documents)
}

// valueQuery matches a command of a page that reads one value, with its output.
var valueQuery = regexp.MustCompile(`(?m)^\$ kubectl (?:--context (\S+) )?get (\S+) (\S+) -n (\S+) -o jsonpath='(.+)'\n(.*)$`)

// checkValues waits until each value is as the page shows it, and returns the number of
// values.
func checkValues(t *testing.T, text string) int {
	t.Helper()
	queries := valueQuery.FindAllStringSubmatch(text, -1)
	for _, query := range queries {
		side, resource, key, path, want := shared.karmada, query[2], client.ObjectKey{Namespace: query[4], Name: query[3]}, query[5], query[6]
		if query[1] != "" {
			side = shared.members[query[1]]
		}
		eventually(t, query[0], func(ctx context.Context) error {
			got, err := readJSONPath(ctx, side, resource, key, path)
			if err == nil && got != want {
				err = fmt.Errorf("the value is %s", got)
			}
			return err
		})
	}
	return len(queries)
}

// readJSONPath returns the value of a JSON path in an object, as kubectl get does.
func readJSONPath(ctx context.Context, cluster client.Client, resource string, key client.ObjectKey, path string) (string, error) {
	if resource == "rb" {
		resource = "resourcebindings"
	}
	kind, err := cluster.RESTMapper().KindFor(schema.GroupVersionResource{Resource: resource})
	if err != nil {
		return "", err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := cluster.Get(ctx, key, object); err != nil {
		return "", err
	}
	template := jsonpath.New("page")
	template.EnableJSONOutput(false)
	if err := template.Parse(path); err != nil {
		return "", err
	}
	var text strings.Builder
	if err := template.Execute(&text, object.Object); err != nil {
		return "", err
	}
	return text.String(), nil
}
