package layout

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestVariablesAreExpanded(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}
	tests := map[string]struct{ text, want string }{
		"a variable":                     {"x$(A)y", "x1y"},
		"two of them":                    {"$(A)$(A)", "11"},
		"one that is empty":              {"[$(EMPTY)]", "[]"},
		"one that is not set":            {"$(C)", "$(C)"},
		"a value is not expanded again":  {"$(B)", "$(A)"},
		"an escaped one":                 {"$$(A)", "$(A)"},
		"an escaped escape":              {"$$$(A)", "$1"},
		"a dollar alone":                 {"5$", "5$"},
		"a variable of shells":           {"$A ${A}", "$A ${A}"},
		"an open bracket without an end": {"$(A", "$(A"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := expand(test.text, values); got != test.want {
				t.Errorf("%q becomes %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func FuzzTextWithoutADollarStays(f *testing.F) {
	f.Add("a$(b)c", "b", "d")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		got := expand(text, map[string]string{name: value})
		if !strings.Contains(text, "$") && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		if plain := expand(text, nil); strings.Count(plain, "$") > strings.Count(text, "$") {
			t.Errorf("%q becomes %q: there are more dollars than before", text, plain)
		}
	})
}

// stored are objects by name, as a cluster holds them.
type stored struct {
	secrets    map[string]map[string][]byte
	configMaps map[string]map[string]string
}

func (s stored) Secret(_ context.Context, name string, optional *bool) (*corev1.Secret, error) {
	data, ok := s.secrets[name]
	if !ok {
		err := apierrors.NewNotFound(corev1.Resource("secrets"), name)
		if Absent(err, optional) {
			return nil, nil
		}
		return nil, err
	}
	return &corev1.Secret{Data: data}, nil
}

func (s stored) ConfigMap(_ context.Context, name string, optional *bool) (*corev1.ConfigMap, error) {
	data, ok := s.configMaps[name]
	if !ok {
		err := apierrors.NewNotFound(corev1.Resource("configmaps"), name)
		if Absent(err, optional) {
			return nil, nil
		}
		return nil, err
	}
	return &corev1.ConfigMap{Data: data}, nil
}

func keyOf(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func TestTheEnvironmentIsWhatThePodSays(t *testing.T) {
	from := stored{
		secrets:    map[string]map[string][]byte{"token": {"value": []byte("s3cret")}},
		configMaps: map[string]map[string]string{"settings": {"LEVEL": "4", "not a name": "x", "HOME": "/nowhere"}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent-1", Namespace: "karmada-system", Labels: map[string]string{"app": "agent"}},
		Spec:       corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{PodIP: "127.70.1.2"},
	}
	fieldOf := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	given := []corev1.EnvVar{{Name: "HOME", Value: "/nest"}}
	tests := map[string]struct {
		container corev1.Container
		want      []corev1.EnvVar
		fails     error
	}{
		"values may refer to those before": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: "$(HOME)/a"}, {Name: "B", Value: "$(A)/b $(C)"}, {Name: "C", Value: "c"}}},
			want:      []corev1.EnvVar{{Name: "HOME", Value: "/nest"}, {Name: "A", Value: "/nest/a"}, {Name: "B", Value: "/nest/a/b $(C)"}, {Name: "C", Value: "c"}},
		},
		"fields of the Pod": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "POD", ValueFrom: fieldOf("metadata.name")}, {Name: "SPACE", ValueFrom: fieldOf("metadata.namespace")},
				{Name: "IP", ValueFrom: fieldOf("status.podIP")}, {Name: "APP", ValueFrom: fieldOf("metadata.labels['app']")},
			}},
			want: []corev1.EnvVar{{Name: "HOME", Value: "/nest"}, {Name: "POD", Value: "agent-1"}, {Name: "SPACE", Value: "karmada-system"}, {Name: "IP", Value: "127.70.1.2"}, {Name: "APP", Value: "agent"}},
		},
		"a key of a Secret": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "TOKEN", ValueFrom: keyOf("token", "value", false)}}},
			want:      []corev1.EnvVar{{Name: "HOME", Value: "/nest"}, {Name: "TOKEN", Value: "s3cret"}},
		},
		"a key that may be absent sets nothing": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: keyOf("token", "other", true)}, {Name: "B", ValueFrom: keyOf("other", "value", true)}}},
			want:      given,
		},
		"a key that must be there": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: keyOf("token", "other", false)}}},
			fails:     errMissingKey,
		},
		"whole ConfigMaps, which replace and are replaced": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{{Prefix: "", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
				Env:     []corev1.EnvVar{{Name: "LEVEL", Value: "5"}},
			},
			want: []corev1.EnvVar{{Name: "HOME", Value: "/nowhere"}, {Name: "LEVEL", Value: "5"}},
		},
		"a source that is not supported": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}},
			fails:     ErrUnsupported,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Environment(t.Context(), pod, &test.container, given, from)
			if !errors.Is(err, test.fails) {
				t.Fatalf("error %v, want %v", err, test.fails)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
