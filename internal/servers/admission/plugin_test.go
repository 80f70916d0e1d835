package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/yaml"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
)

const (
	newPolicy                     = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: shop}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}], unknown: kept, association: true, placement: {spreadConstraints: [{extra: 1}]}}}`
	completePolicy                = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: new-id}, finalizers: [karmada.io/propagation-policy-controller]}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop}], unknown: kept, association: true, placement: {spreadConstraints: [{extra: 1, spreadByField: cluster, minGroups: 1}]}}}`
	invalidPolicy                 = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: shop}, spec: {association: true, resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: other}]}}`
	undecodablePolicy             = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: shop}, spec: {priority: high}}`
	oldBinding                    = `{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding, metadata: {name: b, namespace: shop}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`
	interpreter                   = `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: c}, spec: {target: {apiVersion: example.io/v1, kind: Widget}, customizations: {}}}`
	rebalancer                    = `{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: r}, spec: {workloads: []}}`
	service                       = `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: web, namespace: shop}, spec: {types: [CrossCluster], ports: [{port: 80}], range: {clusterNames: [m1]}}}`
	remedy                        = `{apiVersion: remedy.karmada.io/v1alpha1, kind: Remedy, metadata: {name: r}}`
	workOutsideExecutionNamespace = `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: w, namespace: shop}, spec: {}}`
)

func bindingWithInvalidDependencies(kind string) string {
	return `{apiVersion: work.karmada.io/v1alpha2, kind: ` + kind + `, metadata: {name: b, annotations: {resourcebinding.karmada.io/dependencies: "{}"}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`
}

func reviewer() Reviewer {
	return Reviewer{Rules: DefaultRules(), NewID: func() string { return "new-id" }}
}

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object, err := decodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// newAttributes returns the attributes of a request for an object. The resource is derived from
// the kind of the object.
func newAttributes(object, old *unstructured.Unstructured, operation admission.Operation, subresource string) admission.Attributes {
	subject := object
	if subject == nil {
		subject = old
	}
	gvk := subject.GroupVersionKind()
	plural := map[string]string{"PropagationPolicy": "propagationpolicies", "Remedy": "remedies"}[gvk.Kind]
	if plural == "" {
		plural = strings.ToLower(gvk.Kind) + "s"
	}
	var newObject, oldObject runtime.Object
	if object != nil {
		newObject = object
	}
	if old != nil {
		oldObject = old
	}
	return admission.NewAttributesRecord(newObject, oldObject, gvk, subject.GetNamespace(), subject.GetName(),
		gvk.GroupVersion().WithResource(plural), subresource, operation, nil, false, nil)
}

func TestPluginDefaults(t *testing.T) {
	tests := map[string]struct {
		new, old    string
		operation   admission.Operation
		subresource string
		want        string
	}{
		"a new policy keeps unknown fields":             {new: newPolicy, operation: admission.Create, want: completePolicy},
		"a complete policy is unchanged":                {new: completePolicy, old: completePolicy, operation: admission.Update, want: completePolicy},
		"a binding of the old version":                  {new: oldBinding, operation: admission.Create, want: `{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding, metadata: {name: b, namespace: shop, labels: {resourcebinding.karmada.io/permanent-id: new-id}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`},
		"an updated binding is unchanged":               {new: oldBinding, old: oldBinding, operation: admission.Update, want: oldBinding},
		"a status update is unchanged":                  {new: newPolicy, operation: admission.Update, subresource: "status", want: newPolicy},
		"an object with an invalid schema is unchanged": {new: undecodablePolicy, operation: admission.Create, want: undecodablePolicy},
		"an object of another group is unchanged":       {new: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`, operation: admission.Create, want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, test.new)
			err := NewPlugin(reviewer()).Admit(t.Context(), newAttributes(object, parse(t, test.old), test.operation, test.subresource), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, test.want).Object, object.Object); diff != "" {
				t.Errorf("object differs (-want +got):\n%s", diff)
			}
		})
	}
}

type warningRecorder []string

func (w *warningRecorder) AddWarning(_, text string) { *w = append(*w, text) }

func TestPluginValidates(t *testing.T) {
	const protected = `{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {resourcetemplate.karmada.io/deletion-protected: Always}}}`
	tests := map[string]struct {
		new, old    string
		operation   admission.Operation
		subresource string
		quota       error
		code        int32
		want        []string
		warnings    int
	}{
		"a complete policy passes with a warning": {new: completePolicy, operation: admission.Create, warnings: 1},
		"every violated rule is named": {
			new: invalidPolicy, operation: admission.Create, code: http.StatusForbidden, warnings: 1,
			want: []string{"spec.resourceSelectors[0].namespace", "metadata.labels[propagationpolicy.karmada.io/permanent-id]"},
		},
		"an undecodable object is a bad request":                {new: undecodablePolicy, operation: admission.Create, code: http.StatusBadRequest, want: []string{"priority"}},
		"a status update is not validated":                      {new: invalidPolicy, old: invalidPolicy, operation: admission.Update, subresource: "status"},
		"a binding's dependencies are a list":                   {new: bindingWithInvalidDependencies("ResourceBinding"), operation: admission.Create, code: http.StatusForbidden, want: []string{"metadata.annotations"}},
		"a cluster binding is not validated":                    {new: bindingWithInvalidDependencies("ClusterResourceBinding"), operation: admission.Create},
		"a Work outside of execution namespaces gets a warning": {new: workOutsideExecutionNamespace, operation: admission.Create, warnings: 1},
		"a WorkloadRebalancer gets a warning":                   {new: rebalancer, operation: admission.Create, warnings: 1},
		"a Remedy without actions gets a warning":               {new: remedy, operation: admission.Create, warnings: 1},
		"an updated Remedy without actions gets a warning":      {new: remedy, old: remedy, operation: admission.Update, warnings: 1},
		"a MultiClusterService gets a single warning":           {new: service, operation: admission.Create, warnings: 1},
		"an updated MultiClusterService gets no warning":        {new: service, old: service, operation: admission.Update},
		"a customization gets no warning":                       {new: interpreter, operation: admission.Create},
		"an updated Work gets no warning":                       {new: workOutsideExecutionNamespace, old: workOutsideExecutionNamespace, operation: admission.Update},
		"a quota error keeps its status": {
			new: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: b, namespace: shop}, spec: {resource: {apiVersion: v1, kind: Pod, namespace: shop, name: p}}}`, operation: admission.Create,
			quota: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: "QuotaExceeded", Message: "too much"}},
			code:  http.StatusForbidden, want: []string{"too much"},
		},
		"a protected object is not deleted":              {old: protected, operation: admission.Delete, code: http.StatusForbidden, want: []string{"protected"}},
		"an object without protection is deleted":        {old: `{apiVersion: v1, kind: Secret, metadata: {name: s}}`, operation: admission.Delete},
		"a subresource of a protected object is deleted": {old: protected, operation: admission.Delete, subresource: "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := reviewer()
			r.Quota = func(context.Context, *workv1alpha2.ResourceBinding, *workv1alpha2.ResourceBinding, bool) error {
				return test.quota
			}
			var warnings warningRecorder
			ctx := warning.WithWarningRecorder(t.Context(), &warnings)
			err := NewPlugin(r).Validate(ctx, newAttributes(parse(t, test.new), parse(t, test.old), test.operation, test.subresource), nil)
			if code := statusCode(err); code != test.code {
				t.Errorf("code = %d, want %d: %v", code, test.code, err)
			}
			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not contain %q", err, part)
				}
			}
			if len(warnings) != test.warnings {
				t.Errorf("warnings = %q, want %d", warnings, test.warnings)
			}
		})
	}
}

func statusCode(err error) int32 {
	if err == nil {
		return 0
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return -1
	}
	return status.Status().Code
}

func TestPluginIsRegistered(t *testing.T) {
	plugins := admission.NewPlugins()
	Register(plugins, reviewer())
	if diff := cmp.Diff([]string{"KarmadaAdmission"}, plugins.Registered()); diff != "" {
		t.Errorf("plugins differ (-want +got):\n%s", diff)
	}
	plugin, err := plugins.InitPlugin(PluginName, nil, admission.PluginInitializers{})
	if err != nil {
		t.Fatal(err)
	}
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: true, admission.Connect: false} {
		if got := plugin.Handles(operation); got != want {
			t.Errorf("Handles(%s) = %v, want %v", operation, got, want)
		}
	}
}

// BenchmarkPlugin measures the cost for objects without rules, for policies and for Works.
func BenchmarkPlugin(b *testing.B) {
	plugin := NewPlugin(reviewer())
	for name, object := range map[string]string{
		"no rules": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`,
		"policy":   completePolicy,
		"work":     `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: w, namespace: karmada-es-m1}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}]}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			u := parse(b, object)
			a := newAttributes(u, u, admission.Update, "")
			for b.Loop() {
				if err := errors.Join(plugin.Admit(b.Context(), a, nil), plugin.Validate(b.Context(), a, nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestDecodeAllKindsAndVersions(t *testing.T) {
	for _, kind := range kinds() {
		for version := range kind.versions {
			t.Run(fmt.Sprintf("%s %s", kind.name, version), func(t *testing.T) {
				object, err := kind.decode(version, map[string]any{"metadata": map[string]any{"name": "x"}})
				if err != nil {
					t.Fatal(err)
				}
				if got := object.(metav1.Object).GetName(); got != "x" {
					t.Errorf("name = %q", got)
				}
				if _, err := kind.decode("v0", map[string]any{}); !isUndecodable(err) {
					t.Errorf("an unknown version: %v", err)
				}
			})
		}
	}
	if resource := kinds()[0].resource; resource != (schema.GroupResource{Group: "policy.karmada.io", Resource: "propagationpolicies"}) {
		t.Errorf("the first row is %v", resource)
	}
}

func TestManagedFieldsOfControllerObjectsAreRemoved(t *testing.T) {
	const owned = `, managedFields: [{manager: m, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}}]`
	tests := map[string]struct {
		object, old string
		want        bool
	}{
		"a new Work":      {object: strings.Replace(workOutsideExecutionNamespace, "namespace: shop", "namespace: shop"+owned, 1)},
		"a new binding":   {object: strings.Replace(oldBinding, "namespace: shop", "namespace: shop"+owned, 1)},
		"an updated Work": {object: strings.Replace(workOutsideExecutionNamespace, "namespace: shop", "namespace: shop"+owned, 1), old: workOutsideExecutionNamespace, want: true},
		"a new policy":    {object: strings.Replace(newPolicy, "namespace: shop", "namespace: shop"+owned, 1), want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object, operation := parse(t, test.object), admission.Create
			if test.old != "" {
				operation = admission.Update
			}
			if err := NewPlugin(reviewer()).Admit(t.Context(), newAttributes(object, parse(t, test.old), operation, ""), nil); err != nil {
				t.Fatal(err)
			}
			if got := len(object.GetManagedFields()) > 0; got != test.want {
				t.Errorf("managed fields are kept: %t, want %t", got, test.want)
			}
		})
	}
}

func TestPluginStoresClaims(t *testing.T) {
	calls := 0
	claiming := reviewer()
	claiming.Claim = func(_ context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
		calls++
		return policy.Claim{Name: "base", ID: "id-base"}, kind.Kind == "Secret" && object.GetName() == "s"
	}
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}}`
	tests := map[string]struct {
		object, old, subresource string
		want                     string
		wantCalls                int
	}{
		"a new object that is claimed":     {object: secret, want: "id-base", wantCalls: 1},
		"a new object that is not claimed": {object: strings.Replace(secret, "name: s,", "name: other,", 1), wantCalls: 1},
		"an updated object":                {object: secret, old: secret},
		"a created subresource":            {object: secret, subresource: "token"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			calls = 0
			object, operation := parse(t, test.object), admission.Create
			if test.old != "" {
				operation = admission.Update
			}
			if err := NewPlugin(claiming).Admit(t.Context(), newAttributes(object, parse(t, test.old), operation, test.subresource), nil); err != nil {
				t.Fatal(err)
			}
			if claim, _ := policy.ClaimedBy(object); claim.ID != test.want || calls != test.wantCalls {
				t.Errorf("claimed by %q after %d calls, want %q after %d", claim.ID, calls, test.want, test.wantCalls)
			}
		})
	}
}
