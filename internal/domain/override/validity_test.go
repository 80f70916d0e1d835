package override

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestRuleMustKeepObjectValid(t *testing.T) {
	tests := map[string]struct{ plaintext, path string }{
		"no name":               {`{path: /metadata/name, operator: remove}`, "/metadata/name"},
		"an empty name":         {`{path: /metadata/name, operator: replace, value: ""}`, "/metadata/name"},
		"a number as the name":  {`{path: /metadata/name, operator: replace, value: 7}`, "/metadata/name"},
		"no kind":               {`{path: /kind, operator: remove}`, "/kind"},
		"no API version":        {`{path: /apiVersion, operator: remove}`, "/apiVersion"},
		"no metadata":           {`{path: /metadata, operator: remove}`, "/metadata/name"},
		"a text as metadata":    {`{path: /metadata, operator: replace, value: web}`, "/metadata/name"},
		"a number as namespace": {`{path: /metadata/namespace, operator: replace, value: 7}`, "/metadata/namespace"},
		"a number as a label":   {`{path: /metadata/labels/app, operator: replace, value: 7}`, "/metadata/labels"},
		"a list of annotations": {`{path: /metadata/annotations, operator: add, value: [a]}`, "/metadata/annotations"},
		"a different object":    {`{path: "", operator: replace, value: {a: b}}`, "/apiVersion"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := applyOverriders(t, parseObject(t, deploymentYAML), "plaintext: ["+tc.plaintext+"]")
			var failure *RuleError
			if !errors.As(err, &failure) {
				t.Fatalf("got %v, want a RuleError", err)
			}
			if failure.Path != tc.path || failure.Remedy == "" || failure.Field != "spec.overrideRules[0].overriders" {
				t.Errorf("got %+v", failure)
			}
			if !strings.HasPrefix(err.Error(), `applying ClusterOverridePolicy "one", spec.overrideRules[0].overriders at "`+tc.path) {
				t.Errorf("error = %q", err)
			}
		})
	}
}

func TestOverrideIdentityGateAllowsRename(t *testing.T) {
	rename := newClusterPolicy(t, "one", `overrideRules: [{overriders: {plaintext: [
  {path: /metadata/name, operator: remove}, {path: /metadata/name, operator: add, value: other},
  {path: /metadata/labels, operator: remove}, {path: /metadata/namespace, operator: remove}]}}]`)
	got, _, err := Options{AllowIdentityChange: true}.Apply(parseObject(t, deploymentYAML), newMember("m1"), []Object{rename}, nil)
	if err != nil || got.GetName() != "other" || len(got.GetLabels()) != 0 || got.GetNamespace() != "" {
		t.Errorf("got %v, %v", got, err)
	}
}

// FuzzApply checks that no policy can cause a panic, a change of the input, different
// results for the same input, or an invalid object.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`imageOverrider: [{component: Registry, operator: replace, value: r.x}, {predicate: {path: /spec/template/spec/containers/0/image}, component: Tag, operator: add, value: "-a"}]`,
		`commandOverrider: [{containerName: web, operator: add, value: [x]}]
argsOverrider: [{containerName: web, operator: remove, value: [-a]}]`,
		`labelsOverrider: [{operator: add, value: {a: b}}, {operator: remove, value: {app: ""}}]
annotationsOverrider: [{operator: replace, value: {a: b}}]`,
		`fieldOverrider: [{fieldPath: /metadata/name, yaml: [{subPath: /a, operator: add, value: 1}]}]`,
		`plaintext: [{path: /spec/template/spec/containers/-, operator: add, value: {name: c}}, {path: /metadata/labels, operator: replace, value: null}]`,
		`plaintext: [{path: "", operator: replace, value: {kind: List, items: []}}]`,
		`plaintext: [{path: /spec, operator: remove}]`,
	} {
		f.Add(deploymentYAML, seed)
	}
	f.Add(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [null, {name: 1, args: null}]}}`,
		`argsOverrider: [{containerName: web, operator: add, value: [a]}]`)
	f.Fuzz(func(t *testing.T, text, policy string) {
		var overriders policyv1alpha1.Overriders
		encoded, err := yaml.YAMLToJSON([]byte(text))
		manifest := parseObject(t, deploymentYAML)
		if err != nil || manifest.UnmarshalJSON(encoded) != nil || yaml.Unmarshal([]byte(policy), &overriders) != nil {
			return
		}
		checkApplyInvariants(t, manifest, overriders)
	})
}

// TestApplyInvariantsForAnyOverriders checks what FuzzApply checks, but for mostly valid
// overriders.
func TestApplyInvariantsForAnyOverriders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		operators := rapid.SampledFrom([]policyv1alpha1.OverriderOperator{"add", "remove", "replace", "move"})
		paths := rapid.SampledFrom([]string{
			"", "/", "/metadata", "/metadata/name", "/metadata/namespace", "/metadata/labels", "/metadata/labels/app", "/metadata/annotations",
			"/metadata/annotations/file", "/kind", "/apiVersion", "/spec", "/spec/replicas", "/spec/template/spec/containers",
			"/spec/template/spec/containers/0", "/spec/template/spec/containers/-", "/spec/template/spec/containers/0/image",
			"/spec/template/spec/containers/0/args/1", "/a", "/a/b", "/l/0", "no pointer",
		})
		values := rapid.Custom(func(t *rapid.T) policyv1alpha1.JSON {
			raw := rapid.SampledFrom([]string{"", "null", "7", "1.5", `"text"`, `""`, "[]", `["a", null]`, "{}", `{"name": "web", "args": [1]}`, "{"}).Draw(t, "raw")
			return policyv1alpha1.JSON{Raw: []byte(raw)}
		})
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"-a", "b", "sha256:" + strings.Repeat("a", 32), ""}), 0, 2)
		keys := rapid.MapOfN(rapid.SampledFrom([]string{"app", "file", "x/y~z"}), rapid.SampledFrom([]string{"", "{}", "a: [1]"}), 0, 2)
		var o policyv1alpha1.Overriders
		for range rapid.IntRange(0, 2).Draw(t, "rounds") {
			image := policyv1alpha1.ImageOverrider{
				Component: rapid.SampledFrom([]policyv1alpha1.ImageComponent{"Registry", "Repository", "Tag"}).Draw(t, "component"),
				Operator:  operators.Draw(t, "of image"), Value: strings.Join(words.Draw(t, "image"), ""),
			}
			if rapid.Bool().Draw(t, "predicate") {
				image.Predicate = &policyv1alpha1.ImagePredicate{Path: paths.Draw(t, "image path")}
			}
			o.ImageOverrider = append(o.ImageOverrider, image)
			o.ArgsOverrider = append(o.ArgsOverrider, policyv1alpha1.CommandArgsOverrider{
				ContainerName: "web", Operator: operators.Draw(t, "of args"), Value: words.Draw(t, "args"),
			})
			o.LabelsOverrider = append(o.LabelsOverrider, policyv1alpha1.LabelAnnotationOverrider{Operator: operators.Draw(t, "of labels"), Value: keys.Draw(t, "labels")})
			o.AnnotationsOverrider = append(o.AnnotationsOverrider,
				policyv1alpha1.LabelAnnotationOverrider{Operator: operators.Draw(t, "of annotations"), Value: keys.Draw(t, "annotations")})
			o.FieldOverrider = append(o.FieldOverrider, policyv1alpha1.FieldOverrider{FieldPath: paths.Draw(t, "field"), YAML: []policyv1alpha1.YAMLPatchOperation{
				{SubPath: paths.Draw(t, "sub path"), Operator: operators.Draw(t, "of field"), Value: values.Draw(t, "in field")},
			}})
			o.Plaintext = append(o.Plaintext, policyv1alpha1.PlaintextOverrider{
				Path: paths.Draw(t, "path"), Operator: operators.Draw(t, "of plaintext"), Value: values.Draw(t, "value"),
			})
		}
		// Most overriders fail, so each run uses only one kind of overriders. Otherwise hardly any
		// run would succeed.
		kept := policyv1alpha1.Overriders{}
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			kept.ImageOverrider = o.ImageOverrider
		case 1:
			kept.ArgsOverrider = o.ArgsOverrider
		case 2:
			kept.LabelsOverrider, kept.AnnotationsOverrider = o.LabelsOverrider, o.AnnotationsOverrider
		case 3:
			kept.FieldOverrider = o.FieldOverrider
		case 4:
			kept.Plaintext = o.Plaintext
		default:
			kept = o
		}
		manifest := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(deploymentYAML), &manifest.Object); err != nil {
			t.Fatal(err)
		}
		checkApplyInvariants(t, manifest, kept)
	})
}

// failureReporter is implemented by *testing.T and *rapid.T.
type failureReporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkApplyInvariants(t failureReporter, manifest *unstructured.Unstructured, overriders policyv1alpha1.Overriders) {
	t.Helper()
	source := &policyv1alpha1.ClusterOverridePolicy{}
	source.Name = "one"
	source.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: overriders}}
	before, beforeSource := manifest.DeepCopy(), source.DeepCopy()
	got, applied, err := Apply(manifest, newMember("m1"), []Object{source}, nil)
	again, appliedAgain, errAgain := Apply(manifest, newMember("m1"), []Object{source}, nil)
	if diff := cmp.Diff(before, manifest) + cmp.Diff(beforeSource, source); diff != "" {
		t.Fatalf("the input was changed: %s", diff)
	}
	if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
		t.Fatalf("first error %v, second error %v", err, errAgain)
	}
	if err != nil {
		var failure *RuleError
		if !errors.As(err, &failure) {
			t.Fatalf("%v does not name the rule", err)
		}
		return
	}
	if diff := cmp.Diff(got, again) + cmp.Diff(applied, appliedAgain); diff != "" {
		t.Fatalf("results differ: %s", diff)
	}
	if validateObject(manifest) != nil {
		return
	}
	if err := validateObject(got); err != nil {
		t.Fatalf("the result is not a valid object: %v", err)
	}
	if _, err := got.MarshalJSON(); err != nil {
		t.Fatalf("encoding the result: %v", err)
	}
}
