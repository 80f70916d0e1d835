package work

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

const deniedCreateMessage = `User "system:serviceaccount:karmada-cluster:karmada-east" cannot create resource "deployments" in API group "apps" in the namespace "shop"`

func TestParseMissingRule(t *testing.T) {
	tests := map[string]struct {
		message string
		want    MissingRule
	}{
		"in a namespace":       {"deployments.apps is forbidden: " + deniedCreateMessage, MissingRule{User: "system:serviceaccount:karmada-cluster:karmada-east", Verb: "create", Group: "apps", Resource: "deployments", Namespace: "shop"}},
		"in the whole cluster": {`configmaps is forbidden: User "x" cannot list resource "configmaps" in API group "" at the cluster scope`, MissingRule{User: "x", Verb: "list", Resource: "configmaps"}},
		"a subresource":        {`User "x" cannot patch resource "deployments/status" in API group "apps" at the cluster scope`, MissingRule{User: "x", Verb: "patch", Group: "apps", Resource: "deployments/status"}},
		"an exceeded quota":    {`pods "web" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10`, MissingRule{}},
		"an empty message":     {"", MissingRule{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseMissingRule(test.message)
			if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != MissingRule{}) {
				t.Errorf("%t (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestAppliedConditionNamesMissingRule(t *testing.T) {
	forbidden := func(text string) error {
		return fmt.Errorf("creating Deployment shop/web in cluster east: %w", apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(text)))
	}
	tests := map[string]struct {
		failure      error
		role, reason string
		want         string
	}{
		"with a known role":    {forbidden(deniedCreateMessage), "edge", workv1alpha1.WorkMemberForbidsReason, `add {apiGroups: ["apps"], resources: ["deployments"], verbs: ["create"]} in namespace shop to ClusterRole edge there`},
		"with an unknown role": {forbidden(deniedCreateMessage), "", workv1alpha1.WorkMemberForbidsReason, `to a role of ServiceAccount karmada-cluster/karmada-east there`},
		"a quota":              {forbidden("exceeded quota"), "edge", workv1alpha1.WorkAppliedFailedReason, "exceeded quota"},
		"another failure":      {errors.New("no"), "edge", workv1alpha1.WorkAppliedFailedReason, "no"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := AppliedCondition(&workv1alpha1.Work{}, ExplainForbidden([]error{test.failure}, test.role))
			if got.Reason != test.reason || !strings.Contains(got.Message, test.want) {
				t.Errorf("%s: %s, want %s with %q", got.Reason, got.Message, test.reason, test.want)
			}
		})
	}
}

func FuzzParseMissingRule(f *testing.F) {
	f.Add(deniedCreateMessage)
	f.Fuzz(func(t *testing.T, message string) {
		if rule, ok := ParseMissingRule(message); ok && (rule.Verb == "" || rule.Resource == "") {
			t.Errorf("%+v of %q", rule, message)
		}
	})
}
