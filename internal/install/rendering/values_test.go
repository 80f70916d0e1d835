package rendering_test

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"karmada.io/karmada/internal/install/rendering"
)

// decodeRendered decodes the objects of files that Helm rendered, by kind and name. Unlike the decoder
// of Helm, it reports a field that appears twice.
func decodeRendered(files map[string]string) (map[string]*unstructured.Unstructured, error) {
	objects := map[string]*unstructured.Unstructured{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(files[name]), len(files[name])+1)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if object.Object != nil {
				objects[object.GetKind()+" "+object.GetName()] = object
			}
		}
	}
	return objects, nil
}

// TestUpgradesRunTheJobOnlyIfItHasWork compares the name of the Job that sets up a control plane before
// and after a change of values, because another name starts another Job.
func TestUpgradesRunTheJobOnlyIfItHasWork(t *testing.T) {
	jobName := func(t *testing.T, values rendering.Values) string {
		t.Helper()
		files, err := renderByHelm("karmada", values)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decodeRendered(files)
		if err != nil {
			t.Fatal(err)
		}
		for name := range objects {
			if strings.HasPrefix(name, "Job karmada-setup-") {
				return name
			}
		}
		t.Fatal("there is no Job")
		return ""
	}
	before := jobName(t, nil)
	tests := map[string]struct {
		values rendering.Values
		runs   bool
	}{
		"the same values":              {rendering.Values{}, false},
		"more replicas of a component": {rendering.Values{"scheduler": rendering.Values{"replicaCount": 3}}, false},
		"another version":              {rendering.Values{"karmadaImageVersion": "v1.2.4"}, true},
		"another name of the server":   {rendering.Values{"certs": rendering.Values{"auto": rendering.Values{"hosts": []any{"k.example.com"}}}}, true},
		"the servers in one process":   {rendering.Values{"apiServer": rendering.Values{"program": "karmada-apiserver"}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if after := jobName(t, test.values); (after != before) != test.runs {
				t.Errorf("the Job was %s and is %s", before, after)
			}
		})
	}
}

// TestValuesOfOtherReleasesKeepTheirMeaning renders values files for other releases of the chart.
func TestValuesOfOtherReleasesKeepTheirMeaning(t *testing.T) {
	files, err := renderByHelm("karmada", readValues(t, "testdata/compatible.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeRendered(files)
	if err != nil {
		t.Fatal(err)
	}
	field := func(object string, path ...string) any {
		if objects[object] == nil {
			t.Fatalf("%s is missing", object)
		}
		value, _, err := unstructured.NestedFieldNoCopy(objects[object].Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	container := func(object string) map[string]any {
		containers, _ := field(object, "spec", "template", "spec", "containers").([]any)
		first, _ := containers[0].(map[string]any)
		return first
	}
	for object, want := range map[string]string{
		"Deployment karmada-scheduler":               "docker.io/karmada/karmada-scheduler:v1.17.0",
		"Deployment karmada-webhook":                 "registry.example.com/karmada/karmada-webhook:1.10",
		"Deployment karmada-kube-controller-manager": "registry.k8s.io/kube-controller-manager:v1.33.2",
		"StatefulSet etcd":                           "registry.k8s.io/etcd:3.5.16-0",
	} {
		if got := container(object)["image"]; got != want {
			t.Errorf("the image of %s is %v, want %s", object, got, want)
		}
	}
	if got := container("Deployment karmada-controller-manager")["command"].([]any); !slices.Contains(got, any("--kube-api-qps=1000000")) {
		t.Errorf("a large number in extraCommandArgs became %v", got)
	}
	if _, ok := field("PodDisruptionBudget karmada-webhook", "spec").(map[string]any)["maxUnavailable"]; ok {
		t.Error("the default of a PodDisruptionBudget is added to the one of the user")
	}
	for name := range objects {
		if strings.HasPrefix(name, "Job karmada-setup-") && field(name, "spec", "template", "spec", "nodeSelector", "pool") != "system" {
			t.Error("the Job ignores the node selector of preInstallJob")
		}
	}
}

// FuzzTextInValues renders names, labels, tags and arguments with any text. Either the values are
// refused, or all objects contain the text unchanged.
func FuzzTextInValues(f *testing.F) {
	f.Add("on", "on", "1.10", "on", "0x1f")
	f.Add("y1", "1.10", "1e3", "a: b", "{a: b}")
	f.Add("null", "null", "0x1f", "- a #b", "'a\"")
	f.Add("a-1", "", "null", "a\nb: c\n", "&a *b !c %d @e `f`")
	f.Add("karmada", "1_0", "2001-01-01", "{{ .Values }} {{", "\x7f\t\u2028é")
	f.Add("1", "a b", "a b", "", "")
	f.Fuzz(func(t *testing.T, release, label, tag, argument, path string) {
		if !utf8.ValidString(label + tag + argument + path) {
			return // a file in YAML contains valid text only
		}
		files, err := renderByHelm(release, rendering.Values{
			"global":              rendering.Values{"commonLabels": rendering.Values{"given": label, "app": "mine"}, "imagePullSecrets": []any{rendering.Values{"name": "on"}, "1"}},
			"karmadaImageVersion": tag,
			"componentDefaults":   rendering.Values{"replicaCount": 2, "podAnnotations": rendering.Values{"given": argument, "last": ""}},
			"apiServer":           rendering.Values{"externalURL": "https://" + path, "oidc": rendering.Values{"issuerUrl": argument}},
			"scheduler":           rendering.Values{"extraArgs": []any{"--key=" + argument}, "podLabels": rendering.Values{"app": "mine"}},
			"etcd":                rendering.Values{"internal": rendering.Values{"hostPath": "/" + path}},
			"networkPolicies":     rendering.Values{"enabled": true},
		})
		if err != nil {
			if text := err.Error(); !strings.Contains(text, "values don't meet") && !strings.Contains(text, "of the release cannot be used") && !strings.Contains(text, "karmadaImageVersion is missing") && !strings.Contains(text, "of an image is not valid") {
				t.Fatal(err)
			}
			return
		}
		objects, err := decodeRendered(files)
		if err != nil {
			t.Fatal(err)
		}
		for name, object := range objects {
			if problems := validation.IsDNS1123Subdomain(object.GetName()); len(problems) > 0 {
				t.Errorf("the name of %s: %v", name, problems)
			}
			if got := object.GetLabels(); got["given"] != label || got["app"] == "mine" {
				t.Errorf("the labels of %s are %v, want the label %q", name, got, label)
			}
		}
		checkScheduler(t, objects["Deployment "+release+"-scheduler"], tag, argument)
	})
}

func checkScheduler(t *testing.T, scheduler *unstructured.Unstructured, tag, argument string) {
	t.Helper()
	annotations, _, _ := unstructured.NestedStringMap(scheduler.Object, "spec", "template", "metadata", "annotations")
	if annotations["given"] != argument {
		t.Errorf("the annotation is %q, want %q", annotations["given"], argument)
	}
	containers, _, _ := unstructured.NestedSlice(scheduler.Object, "spec", "template", "spec", "containers")
	container := containers[0].(map[string]any)
	if got := container["image"]; got != "registry.example.com/karmada/karmada:"+tag {
		t.Errorf("the image is %q", got)
	}
	if !slices.Contains(container["command"].([]any), any("--key="+argument)) {
		t.Errorf("the command %q lacks the argument %q", container["command"], argument)
	}
}
