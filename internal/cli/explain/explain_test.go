package explain

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/cli/command"
)

func TestResolve(t *testing.T) {
	preferred := schema.GroupVersion{Group: "autoscaling", Version: "v2"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{preferred, apps, {Version: "v1"}})
	mapper.Add(preferred.WithKind("HorizontalPodAutoscaler"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersion{Group: "autoscaling", Version: "v1"}.WithKind("HorizontalPodAutoscaler"), meta.RESTScopeNamespace)
	mapper.Add(apps.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersion{Version: "v1"}.WithKind("Namespace"), meta.RESTScopeRoot)

	// Like the mapper of the discovery, it also has kinds in lower case.
	gears := apps.WithResource("gears")
	for _, kind := range []string{"cog", "Cog"} {
		mapper.AddSpecific(apps.WithKind(kind), gears, apps.WithResource("gear"), meta.RESTScopeNamespace)
	}

	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	tests := map[string]struct {
		args     []string
		wantKind schema.GroupVersionKind
		wantKey  types.NamespacedName
	}{
		"a resource and a name":           {[]string{"deployments", "web"}, apps.WithKind("Deployment"), web},
		"a resource in the singular":      {[]string{"deployment/web"}, apps.WithKind("Deployment"), web},
		"a resource with its group":       {[]string{"deployments.apps/web"}, apps.WithKind("Deployment"), web},
		"a resource with version, group":  {[]string{"deployments.v1.apps/web"}, apps.WithKind("Deployment"), web},
		"a kind":                          {[]string{"Deployment/web"}, apps.WithKind("Deployment"), web},
		"a kind with its group":           {[]string{"Deployment.apps/web"}, apps.WithKind("Deployment"), web},
		"a kind in lower case":            {[]string{"cog.apps/web"}, apps.WithKind("Cog"), web},
		"another version than preferred":  {[]string{"horizontalpodautoscalers.v1.autoscaling/web"}, preferred.WithKind("HorizontalPodAutoscaler"), web},
		"an object without a namespace":   {[]string{"namespace/shop"}, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, types.NamespacedName{Name: "shop"}},
		"a resource that is not singular": {[]string{"namespaces", "shop"}, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, types.NamespacedName{Name: "shop"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(mapper, test.args, "shop")
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind() != test.wantKind || got.Key != test.wantKey {
				t.Errorf("got %s %s, want %s %s", got.Kind(), got.Key, test.wantKind, test.wantKey)
			}
		})
	}
	if _, err := Resolve(mapper, []string{"frigate/web"}, "shop"); err == nil || err.Error() != `the control plane has no resource type "frigate"` {
		t.Errorf("an unknown type: %v", err)
	}
}

func TestCheckArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		ok   bool
	}{
		"kind and name":    {[]string{"deployment", "web"}, true},
		"kind/name":        {[]string{"deployment/web"}, true},
		"nothing":          {nil, false},
		"only a kind":      {[]string{"deployment"}, false},
		"two names":        {[]string{"deployment", "web", "db"}, false},
		"two kinds":        {[]string{"deployment,service", "web"}, false},
		"two slashes":      {[]string{"deployment/web/db"}, false},
		"two pairs":        {[]string{"deployment/web", "service/web"}, false},
		"an empty name":    {[]string{"deployment/"}, false},
		"an empty kind":    {[]string{"/web"}, false},
		"an empty word":    {[]string{""}, false},
		"a name and slash": {[]string{"deployment", "a/b"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := validateArguments(nil, test.args)
			var usage *command.UsageError
			if (err == nil) != test.ok || err != nil && !errors.As(err, &usage) {
				t.Errorf("got %v, want ok: %t", err, test.ok)
			}
		})
	}
}
