// Package api registers the types that Karmada adds to Kubernetes. Each group and version is a
// package below.
//
// The packages below import only apimachinery and k8s.io/api, so that clients of Karmada
// get no other dependencies.
package api

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	multiclusterv1alpha1 "karmada.io/karmada/api/multicluster/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	operatorv1alpha1 "karmada.io/karmada/api/operator/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// AddToScheme registers the types of all groups with the scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		appsv1alpha1.AddToScheme,
		autoscalingv1alpha1.AddToScheme,
		clusterv1alpha1.AddToScheme,
		configv1alpha1.AddToScheme,
		multiclusterv1alpha1.AddToScheme,
		networkingv1alpha1.AddToScheme,
		operatorv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme,
		remedyv1alpha1.AddToScheme,
		searchv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering API types: %w", err)
		}
	}
	// The storage version is preferred for bindings without a version.
	if err := scheme.SetVersionPriority(workv1alpha2.GroupVersion, workv1alpha1.GroupVersion); err != nil {
		return fmt.Errorf("ordering the versions of %s: %w", workv1alpha2.GroupName, err)
	}
	return nil
}
