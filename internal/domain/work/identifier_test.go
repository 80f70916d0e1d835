package work

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func newManifests(texts ...string) []workv1alpha1.Manifest {
	var all []workv1alpha1.Manifest
	for _, text := range texts {
		all = append(all, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return all
}

const (
	configMapJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"}}`
	webJSON       = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`
)

func TestIdentifyManifest(t *testing.T) {
	got, err := IdentifyManifest(newManifests(configMapJSON, webJSON), parseObject(t, deployment))
	if err != nil {
		t.Fatal(err)
	}
	want := workv1alpha1.ResourceIdentifier{Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identifier (-want +got):\n%s", diff)
	}
	if got, err := IdentifyManifest(newManifests(configMapJSON), parseObject(t, deployment)); err == nil {
		t.Errorf("found %+v among other manifests", got)
	}
	if got, err := IdentifyManifest(newManifests(`{`), parseObject(t, deployment)); err == nil {
		t.Errorf("found %+v in a manifest that is no JSON", got)
	}
}

func TestMergeManifestStatus(t *testing.T) {
	both := newManifests(configMapJSON, webJSON)
	status := func(ordinal int, kind, name, text string) workv1alpha1.ManifestStatus {
		group := ""
		if kind == "Deployment" {
			group = "apps"
		}
		return workv1alpha1.ManifestStatus{
			Identifier: workv1alpha1.ResourceIdentifier{Ordinal: ordinal, Group: group, Version: "v1", Kind: kind, Namespace: "shop", Name: name},
			Status:     &runtime.RawExtension{Raw: []byte(text)},
		}
	}
	configured, web := status(0, "ConfigMap", "c", `{"n":1}`), status(1, "Deployment", "web", `{"n":1}`)
	newer := status(1, "Deployment", "web", `{"n":2}`)
	stale := status(1, "Deployment", "old", `{"n":1}`)
	type list = []workv1alpha1.ManifestStatus
	tests := map[string]struct {
		before list
		entry  workv1alpha1.ManifestStatus
		want   list
	}{
		"the first status":                         {nil, web, list{web}},
		"the status of another manifest stays":     {list{web}, configured, list{configured, web}},
		"a newer status replaces the older":        {list{configured, web}, newer, list{configured, newer}},
		"statuses of former manifests are dropped": {list{configured, stale}, web, list{configured, web}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := MergeManifestStatus(tc.before, tc.entry, both)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			if again := MergeManifestStatus(got, tc.entry, both); !EqualManifestStatuses(got, again) {
				t.Error("merging again changes something")
			}
		})
	}
	if got := DropManifestStatus(list{configured, web}, web.Identifier, both); !EqualManifestStatuses(got, list{configured}) {
		t.Errorf("after the object is gone: %+v", got)
	}
	if EqualManifestStatuses(list{web}, list{newer}) || EqualManifestStatuses(list{web}, nil) {
		t.Error("different lists are reported as equal")
	}
}

func TestHasManifestOfKind(t *testing.T) {
	of := &workv1alpha1.Work{Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: newManifests(configMapJSON, `{`, webJSON)}}}
	tests := map[string]struct {
		kind schema.GroupVersionKind
		want bool
	}{
		"the kind of the first manifest":                   {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, true},
		"the kind of a manifest after an invalid one":      {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, true},
		"another version of the kind":                      {schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "Deployment"}, false},
		"another kind":                                     {schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, false},
		"an empty kind does not match an invalid manifest": {schema.GroupVersionKind{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HasManifestOfKind(of, tc.kind); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestDecodeManifestMetadata(t *testing.T) {
	tests := map[string]struct {
		manifest, name string
		want           error
	}{
		"an object":                    {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","labels":{"a":"b"}},"data":{"c":"d"}}`, "web", nil},
		"a field that differs in case": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"Metadata":{"name":"other"}}`, "web", nil},
		"an object without a kind":     {`{"metadata":{"name":"web"}}`, "", errNoKind},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := newManifests(test.manifest)[0]
			head, err := DecodeManifestMetadata(raw)
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if err != nil {
				return
			}
			identifier, err := IdentifierAt([]workv1alpha1.Manifest{raw}, 0)
			if err != nil || head.GetName() != test.name || identifier.Name != test.name || head.GetKind() != "ConfigMap" {
				t.Errorf("got %v and %v (error %v), want the name %s", head, identifier, err, test.name)
			}
			if _, found := head.Object["data"]; found {
				t.Error("fields outside of the metadata are decoded")
			}
		})
	}
}
