package override

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An entry without effect is recorded with its reason, and not as applied.
func TestIneffectiveEntriesAreRecorded(t *testing.T) {
	const (
		deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {template: {spec: {containers: [{name: web, image: "web:1"}, {name: log}]}}}}`
		cronJob    = `{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop, name: web}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web, image: web}]}}}}}}`
		settings   = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}}`
		entry      = `OverridePolicy "shop/check", spec.overrideRules[0].overriders.`
	)
	rule := func(overriders, cluster string) string {
		return "overrideRules: [{targetCluster: {clusterNames: [" + cluster + "]}, overriders: {" + overriders + "}}]"
	}
	tests := map[string]struct {
		manifest, spec, want string
		isApplied            bool
	}{
		"an existing container":      {deployment, rule("argsOverrider: [{containerName: web, operator: add}]", "m1"), "", true},
		"a missing container":        {deployment, rule("argsOverrider: [{containerName: nginx, operator: add}]", "m1"), entry + `argsOverrider[0]: Deployment shop/web has no container "nginx"; it has "log", "web"`, false},
		"a rule for another cluster": {deployment, rule("argsOverrider: [{containerName: nginx, operator: add}]", "m2"), "", false},
		"a kind without containers":  {settings, rule("argsOverrider: [{containerName: nginx, operator: add}]", "m1"), "", true},
		"a kind whose containers are not changed": {
			cronJob, rule("imageOverrider: [{component: Tag, operator: replace, value: v2}]", "m1"),
			entry + `imageOverrider[0]: containers of kind CronJob are not changed; use a plaintext overrider for a path below /spec/jobTemplate/spec/template/spec/containers`, false,
		},
		"an invalid image": {
			deployment, rule(`imageOverrider: [{component: Tag, operator: add, value: ":v2"}], labelsOverrider: [{operator: add, value: {a: b}}]`, "m1"),
			entry + `imageOverrider[0]: image "web:1" at /spec/template/spec/containers/0/image is not changed, because the result would not be a valid image reference: image "web:1:v2" has an invalid tag`, true,
		},
		"a field overrider without operations": {deployment, rule("fieldOverrider: [{fieldPath: /spec/x}]", "m1"), entry + "fieldOverrider[0]: it has neither json nor yaml operations", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, record, err := Apply(parseObject(t, test.manifest), newMember("m1"), nil, []Object{newNamespacePolicy(t, "shop", "check", test.spec)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, record.WithoutEffect); diff != "" {
				t.Errorf("entries without effect (-want +got):\n%s", diff)
			}
			if (record.Namespaced != "") != test.isApplied {
				t.Errorf("applied: %s", record.Namespaced)
			}
		})
	}
}

// If one image of a workload would become invalid, the entry changes none.
func TestImageOverriderChangesAllImagesOrNone(t *testing.T) {
	manifest := parseObject(t, `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: "a:1"}, {name: b, image: "b@`+sha256Digest+`"}]}}`)
	got, err := applyOverriders(t, manifest, `imageOverrider: [{component: Tag, operator: add, value: "-alpine"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&unstructured.Unstructured{Object: manifest.Object}, got); diff != "" {
		t.Errorf("manifest (-before +after):\n%s", diff)
	}
}
