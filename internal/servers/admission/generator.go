package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// validateGenerator returns an error if GeneratorUser writes a role or a namespace for a cluster that
// exists already. Otherwise any holder of a token could add permissions for the name of that cluster, and
// keep the name in use after the removal of the cluster.
func (r Reviewer) validateGenerator(ctx context.Context, user string, resource schema.GroupResource, name string) error {
	if user != agent.GeneratorUser || r.ClusterExists == nil || !slices.Contains(generatedResources(), resource) {
		return nil
	}
	cluster := agent.GeneratedFor(name)
	if cluster == "" {
		return nil
	}
	exists, err := r.ClusterExists(ctx, cluster)
	if err != nil {
		return &unavailableError{err}
	}
	if exists {
		return agent.ClusterExistsError(cluster)
	}
	return nil
}

// generatedResources returns the resources that GeneratorUser creates for a cluster.
func generatedResources() []schema.GroupResource {
	resources := []schema.GroupResource{{Group: corev1.GroupName, Resource: "namespaces"}}
	for _, name := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		resources = append(resources, schema.GroupResource{Group: rbacv1.GroupName, Resource: name})
	}
	return resources
}

// StoredClusterExists returns a function that reports whether the control plane has a Cluster, or a
// reservation of its name.
func StoredClusterExists(karmada dynamic.Interface) func(ctx context.Context, name string) (bool, error) {
	return func(ctx context.Context, name string) (bool, error) {
		_, err := karmada.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return true, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("reading cluster %q: %w", name, err)
		}
		role, err := karmada.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles")).Get(ctx, agent.RoleName(name), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading the ClusterRole of the agent of cluster %q: %w", name, err)
		}
		return role.GetAnnotations()[clusterv1alpha1.AgentRequestAnnotation] == clusterv1alpha1.NameReservation, nil
	}
}

// validatePushCredentials returns an error if an agent writes a Secret with the credentials of a cluster
// in push mode. An agent of an earlier cluster of the same name may have been authorized before the
// Secret existed, and even the response to its write would contain the credentials.
func validatePushCredentials(resource schema.GroupResource, storedLabels map[string]string) error {
	if resource == secretResource() && storedLabels[clusterv1alpha1.PushCredentialsLabel] == "true" {
		return errors.New("this Secret contains the credentials of a cluster in push mode, which has no agent")
	}
	return nil
}

func secretResource() schema.GroupResource { return corev1.Resource("secrets") }

// labelsOf returns the labels of an object, or nil for an object without metadata.
func labelsOf(object runtime.Object) map[string]string {
	metadata, err := meta.Accessor(object)
	if err != nil {
		return nil
	}
	return metadata.GetLabels()
}

// nameOf returns the name of an object, or an empty string for an object without metadata.
func nameOf(object runtime.Object) string {
	metadata, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return metadata.GetName()
}
