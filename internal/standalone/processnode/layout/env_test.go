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

func TestExpandVariables(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}
	tests := map[string]struct{ text, want string }{
		"a variable":                    {"x$(A)y", "x1y"},
		"two variables":                 {"$(A)$(A)", "11"},
		"an empty variable":             {"[$(EMPTY)]", "[]"},
		"an unknown variable":           {"$(C)", "$(C)"},
		"a value is not expanded again": {"$(B)", "$(A)"},
		"an escaped variable":           {"$$(A)", "$(A)"},
		"an escaped escape":             {"$$$(A)", "$1"},
		"a single dollar":               {"5$", "5$"},
		"a shell variable":              {"$A ${A}", "$A ${A}"},
		"an unclosed bracket":           {"$(A", "$(A"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := expandVariables(test.text, values); got != test.want {
				t.Errorf("%q becomes %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func FuzzExpandVariables(f *testing.F) {
	f.Add("a$(b)c", "b", "d")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		got := expandVariables(text, map[string]string{name: value})
		if !strings.Contains(text, "$") && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		if plain := expandVariables(text, nil); strings.Count(plain, "$") > strings.Count(text, "$") {
			t.Errorf("%q becomes %q, which has more dollar signs", text, plain)
		}
	})
}

// fakeObjects holds Secrets and ConfigMaps by name.
type fakeObjects struct {
	secrets    map[string]map[string][]byte
	configMaps map[string]map[string]string
}

func (f fakeObjects) Secret(_ context.Context, name string, optional *bool) (*corev1.Secret, error) {
	data, ok := f.secrets[name]
	if !ok {
		err := apierrors.NewNotFound(corev1.Resource("secrets"), name)
		if IsOptionalNotFound(err, optional) {
			return nil, nil
		}
		return nil, err
	}
	return &corev1.Secret{Data: data}, nil
}

func (f fakeObjects) ConfigMap(_ context.Context, name string, optional *bool) (*corev1.ConfigMap, error) {
	data, ok := f.configMaps[name]
	if !ok {
		err := apierrors.NewNotFound(corev1.Resource("configmaps"), name)
		if IsOptionalNotFound(err, optional) {
			return nil, nil
		}
		return nil, err
	}
	return &corev1.ConfigMap{Data: data}, nil
}

func secretKeyRef(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func TestEnvironment(t *testing.T) {
	objects := fakeObjects{
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
	base := []corev1.EnvVar{{Name: "HOME", Value: "/nest"}}
	tests := map[string]struct {
		container corev1.Container
		want      []corev1.EnvVar
		wantErr   error
	}{
		"values refer to earlier variables": {
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
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "TOKEN", ValueFrom: secretKeyRef("token", "value", false)}}},
			want:      []corev1.EnvVar{{Name: "HOME", Value: "/nest"}, {Name: "TOKEN", Value: "s3cret"}},
		},
		"an optional key that does not exist": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: secretKeyRef("token", "other", true)}, {Name: "B", ValueFrom: secretKeyRef("other", "value", true)}}},
			want:      base,
		},
		"a required key that does not exist": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: secretKeyRef("token", "other", false)}}},
			wantErr:   errMissingKey,
		},
		"a whole ConfigMap overrides and is overridden": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{{Prefix: "", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
				Env:     []corev1.EnvVar{{Name: "LEVEL", Value: "5"}},
			},
			want: []corev1.EnvVar{{Name: "HOME", Value: "/nowhere"}, {Name: "LEVEL", Value: "5"}},
		},
		"an unsupported source": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}},
			wantErr:   ErrUnsupported,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Environment(t.Context(), pod, &test.container, base, objects)
			if !errors.Is(err, test.wantErr) {
				t.Fatalf("error %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
