package rendering_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"karmada.io/karmada/internal/install/rendering"
)

// TestJobsChangeOnlyObjectsOfTheInstallation checks that the Roles of Jobs, such as the Job that renews
// certificates, name all objects that the Jobs change, and only workloads that the chart renders.
func TestJobsChangeOnlyObjectsOfTheInstallation(t *testing.T) {
	external := readValues(t, filepath.Join("testdata", "external-etcd.values.yaml"))
	external["componentDefaults"] = mirrored()["componentDefaults"]
	builtIn := rendering.Values{"apiServer": rendering.Values{"program": "karmada-apiserver"}, "components": []any{"search"}, "componentDefaults": mirrored()["componentDefaults"]}
	for name, values := range map[string]rendering.Values{
		"the default":            mirrored(),
		"an external etcd":       external,
		"one program and search": builtIn,
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := rendering.Installation{Release: "karmada", Namespace: "karmada-system", Version: "v1.2.3", Values: values}.Host()
			if err != nil {
				t.Fatal(err)
			}
			rendered := map[string][]string{}
			roles := 0
			for _, object := range objects {
				resource := strings.ToLower(object.GetKind()) + "s"
				rendered[resource] = append(rendered[resource], object.GetName())
			}
			for _, object := range objects {
				if object.GetKind() != "Role" {
					continue
				}
				roles++
				role := &rbacv1.Role{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
					t.Fatal(err)
				}
				checkNamedObjects(t, role, rendered)
			}
			if roles == 0 {
				t.Error("there is no Role")
			}
		})
	}
}

// checkNamedObjects checks the rules of a Role that change objects.
func checkNamedObjects(t *testing.T, role *rbacv1.Role, rendered map[string][]string) {
	t.Helper()
	for _, rule := range role.Rules {
		changes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"create", "get", "list", "watch"}, verb) })
		if changes && len(rule.ResourceNames) == 0 {
			t.Errorf("Role %s may %v every object of %v", role.Name, rule.Verbs, rule.Resources)
		}
		for _, resource := range rule.Resources {
			if resource != "deployments" && resource != "statefulsets" {
				continue
			}
			want := slices.Sorted(slices.Values(rendered[resource]))
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(rule.ResourceNames))); diff != "" {
				t.Errorf("%s in Role %s (-rendered +named):\n%s", resource, role.Name, diff)
			}
		}
	}
}
