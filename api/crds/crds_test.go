package crds

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Conversion any
		Versions   []struct{ Name string }
	}
}

func decode(t *testing.T, crd CRD) definition {
	t.Helper()
	var d definition
	if err := yaml.Unmarshal(crd.YAML, &d); err != nil {
		t.Fatalf("decoding %s: %v", crd.Name(), err)
	}
	return d
}

func all(t *testing.T) []CRD {
	t.Helper()
	crds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) == 0 {
		t.Fatal("no CRDs are embedded")
	}
	return crds
}

func TestAllIsSortedByName(t *testing.T) {
	t.Parallel()
	crds := all(t)
	if !slices.IsSortedFunc(crds, func(a, b CRD) int { return strings.Compare(a.Name(), b.Name()) }) {
		t.Error("CRDs are not sorted by name")
	}
	for _, crd := range crds {
		if got := decode(t, crd).Metadata.Name; got != crd.Name() {
			t.Errorf("name is %q, want %q", got, crd.Name())
		}
	}
}

func TestNeedsConversion(t *testing.T) {
	t.Parallel()
	var converted []string
	for _, crd := range all(t) {
		d := decode(t, crd)
		if hasSeveralVersions := len(d.Spec.Versions) > 1; hasSeveralVersions != crd.NeedsConversion() {
			t.Errorf("%s: has several versions %v, NeedsConversion %v", crd.Name(), hasSeveralVersions, crd.NeedsConversion())
		}
		if d.Spec.Conversion != nil {
			t.Errorf("%s: the generated definition sets spec.conversion", crd.Name())
		}
		if crd.NeedsConversion() {
			converted = append(converted, crd.Name())
		}
	}
	want := []string{"clusterresourcebindings.work.karmada.io", "resourcebindings.work.karmada.io"}
	if diff := cmp.Diff(want, converted); diff != "" {
		t.Errorf("CRDs that need conversion (-want +got):\n%s", diff)
	}
}

func TestConversionPatch(t *testing.T) {
	t.Parallel()
	got, err := ConversionPatch("https://webhook.karmada-system.svc:443"+ConversionPath, []byte("certificates"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"spec":{"conversion":{"strategy":"Webhook","webhook":{` +
		`"clientConfig":{"caBundle":"Y2VydGlmaWNhdGVz","url":"https://webhook.karmada-system.svc:443/convert"},` +
		`"conversionReviewVersions":["v1"]}}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}
