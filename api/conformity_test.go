package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"karmada.io/karmada/api/crds"
)

// testdata/schema holds the wire contract of each custom resource. Clients and stored
// objects depend on it, so a change of these files is an API change.
const contractFiles = "testdata/schema"

func TestCustomResourcesMatchContract(t *testing.T) {
	t.Parallel()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	generated := map[string]crds.CRD{}
	for _, crd := range all {
		generated[crd.Name()] = crd
	}

	files, err := filepath.Glob(filepath.Join(contractFiles, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no contracts found: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		crd, ok := generated[name]
		if !ok {
			t.Errorf("%s has a contract but no CRD", name)
			continue
		}
		delete(generated, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithContract(t, crd, file)
		})
	}
	for name := range generated {
		t.Errorf("%s has a CRD but no contract", name)
	}
}

func compareWithContract(t *testing.T, crd crds.CRD, file string) {
	t.Helper()
	contract, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(contract), "\n"), "\n")

	d := decodeDefinition(t, crd)
	d.dropAddedShortNames(want)
	for i := range d.Spec.Versions {
		d.Spec.Versions[i].Schema.OpenAPIV3Schema.dropAddedRules(string(contract))
		d.Spec.Versions[i].dropAddedColumns(want)
	}
	if diff := cmp.Diff(want, d.lines(kubernetesPaths(want))); diff != "" {
		t.Errorf("schema (-contract +generated):\n%s", diff)
	}
}

func decodeDefinition(t *testing.T, crd crds.CRD) definition {
	t.Helper()
	var d definition
	if err := yaml.Unmarshal(crd.YAML, &d); err != nil {
		t.Fatalf("decoding %s: %v", crd.Name(), err)
	}
	return d
}

// kubernetesPaths returns the paths in a contract that have Kubernetes types.
func kubernetesPaths(contract []string) map[string]string {
	paths := map[string]string{}
	version := ""
	for _, line := range contract {
		if rest, ok := strings.CutPrefix(line, "version "); ok {
			version, _, _ = strings.Cut(rest, " ")
		}
		if path, name, ok := strings.Cut(line, " k8s "); ok {
			paths[version+path] = name
		}
	}
	return paths
}

func TestFieldsHaveDescriptions(t *testing.T) {
	t.Parallel()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		var d struct {
			Spec struct {
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema *describedNode }
				}
			}
		}
		if err := yaml.Unmarshal(crd.YAML, &d); err != nil {
			t.Fatalf("decoding %s: %v", crd.Name(), err)
		}
		for _, v := range d.Spec.Versions {
			for _, path := range v.Schema.OpenAPIV3Schema.undescribedPaths("") {
				t.Errorf("%s %s: %s has no description", crd.Name(), v.Name, path)
			}
		}
	}
}

type describedNode struct {
	Description string
	Properties  map[string]*describedNode
	Items       *describedNode
}

// undescribedPaths returns the fields without a description. The API server describes the
// metadata of objects.
func (d *describedNode) undescribedPaths(path string) []string {
	var paths []string
	for name, property := range d.Properties {
		at := path + "." + name
		if name == "metadata" {
			continue
		}
		if property.Description == "" {
			paths = append(paths, at)
		}
		paths = append(paths, property.undescribedPaths(at)...)
	}
	if d.Items != nil {
		paths = append(paths, d.Items.undescribedPaths(path+"[]")...)
	}
	return paths
}

func TestAddedPrinterColumnsComeLast(t *testing.T) {
	t.Parallel()
	known := printerColumn{Name: "AGE", Type: "date", JSONPath: ".metadata.creationTimestamp"}
	wide := printerColumn{Name: "OURS", Type: "string", JSONPath: ".spec.a", Priority: 1}
	always := printerColumn{Name: "OURS", Type: "string", JSONPath: ".spec.a"}
	contract := []string{known.line()}
	tests := map[string]struct{ columns, want []printerColumn }{
		"an added column of -o wide":                   {[]printerColumn{known, wide}, []printerColumn{known}},
		"an added column of the default output":        {[]printerColumn{known, always}, []printerColumn{known, always}},
		"an added column before those of the contract": {[]printerColumn{wide, known}, []printerColumn{wide, known}},
		"only columns of the contract":                 {[]printerColumn{known}, []printerColumn{known}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := version{AdditionalPrinterColumns: test.columns}
			v.dropAddedColumns(contract)
			if diff := cmp.Diff(test.want, v.AdditionalPrinterColumns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}
