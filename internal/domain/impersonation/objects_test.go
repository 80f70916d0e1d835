package impersonation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/domain/impersonation"
)

// asYAML encodes an object as YAML.
func asYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRole(t *testing.T) {
	const head = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    karmada.io/system: "true"
  name: karmada-impersonator
`
	tests := map[string]struct {
		subjects impersonation.Subjects
		want     string
	}{
		"no rules without subjects": {want: head + "rules: null\n"},
		"one rule for each kind of subject": {
			subjects: impersonation.Subjects{Users: []string{"ann", "bob"}, ServiceAccounts: []string{"robot"}, Groups: []string{"dev"}},
			want: head + `rules:
- apiGroups:
  - ""
  resourceNames:
  - ann
  - bob
  resources:
  - users
  verbs:
  - impersonate
- apiGroups:
  - ""
  resourceNames:
  - robot
  resources:
  - serviceaccounts
  verbs:
  - impersonate
- apiGroups:
  - ""
  resourceNames:
  - dev
  resources:
  - groups
  verbs:
  - impersonate
`,
		},
		"no rule for a kind without subjects": {
			subjects: impersonation.Subjects{Groups: []string{"system:masters"}},
			want: head + `rules:
- apiGroups:
  - ""
  resourceNames:
  - system:masters
  resources:
  - groups
  verbs:
  - impersonate
`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, asYAML(t, impersonation.NewRole(test.subjects, ""))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBinding(t *testing.T) {
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    karmada.io/system: "true"
  name: karmada-impersonator
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: karmada-impersonator
subjects:
- kind: ServiceAccount
  name: karmada-impersonator
  namespace: karmada-cluster
`
	if diff := cmp.Diff(want, asYAML(t, impersonation.NewBinding("karmada-cluster", ""))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIsSameControlPlane(t *testing.T) {
	subjects := impersonation.Subjects{Users: []string{"ann"}}
	renamed, unlabeled := impersonation.NewRole(subjects, "this"), impersonation.NewRole(subjects, "this")
	renamed.Name, unlabeled.Labels = "karmada-agent", nil
	tests := map[string]struct {
		observed metav1.Object
		want     bool
	}{
		"an object of this control plane":                 {impersonation.NewRole(impersonation.Subjects{}, "this"), true},
		"an object of another control plane":              {impersonation.NewRole(subjects, "other"), false},
		"an object that names no control plane":           {impersonation.NewRole(subjects, ""), false},
		"another object of this control plane":            {renamed, false},
		"an object that Karmada did not create by itself": {unlabeled, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := impersonation.IsSameControlPlane(test.observed, impersonation.NewRole(subjects, "this")); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if unknown := impersonation.NewRole(subjects, ""); impersonation.IsSameControlPlane(unknown, unknown) {
		t.Error("objects that name no control plane are of the same control plane")
	}
}
