package e2e

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func newDeployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: objectMeta(namespace, name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.19"}}},
			},
		},
	}
}

func newConfigMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(namespace, name), Data: map[string]string{"key": value}}
}

func rawJSON(value string) policyv1alpha1.JSON { return policyv1alpha1.JSON{Raw: []byte(value)} }

func storageRequest(storage string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(storage)}
}

var (
	deploymentSelector = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	configMapSelector  = policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}
)

// resourceSelectors are the selectors of a new policy.
type resourceSelectors []policyv1alpha1.ResourceSelector

func selectAll(kinds ...policyv1alpha1.ResourceSelector) resourceSelectors { return kinds }

// propagationPolicy returns a policy that propagates the selected objects of the namespace
// to clusters.
func (r resourceSelectors) propagationPolicy(namespace string, clusters ...string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: objectMeta(namespace, "everywhere"),
		Spec:       policyv1alpha1.PropagationSpec{ResourceSelectors: r, Placement: r.placement(clusters...)},
	}
}

// clusterPropagationPolicy returns a policy that propagates the selected cluster-scoped
// objects to clusters.
func (r resourceSelectors) clusterPropagationPolicy(name string, clusters ...string) *policyv1alpha1.ClusterPropagationPolicy {
	return &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1alpha1.PropagationSpec{ResourceSelectors: r, Placement: r.placement(clusters...)},
	}
}

func (r resourceSelectors) placement(clusters ...string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
}
