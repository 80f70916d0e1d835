package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// workloads is the namespace of the delivered objects.
const workloads = "workloads"

// replicas is the number of Pods of a delivered Deployment.
const replicas = 2

// checkDelivery creates a ConfigMap and a Deployment in the control plane. Their member must run the Pods,
// and the control plane must show the status.
func (j *journey) checkDelivery(ctx context.Context, name string) error {
	for _, object := range deliveredObjects(name) {
		// A webhook or an API server of the control plane may just be restarting.
		err := j.servers.await(ctx, "the control plane accepts "+object.GetName(), stepTimeout, func(ctx context.Context) error {
			if err := j.karmada.Create(ctx, object); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	key := client.ObjectKey{Namespace: workloads, Name: name}
	return j.servers.await(ctx, "the objects are delivered", stepTimeout, func(ctx context.Context) error {
		if err := j.host.Get(ctx, key, &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("reading the ConfigMap of the member: %w", err)
		}
		template := &appsv1.Deployment{}
		if err := j.karmada.Get(ctx, key, template); err != nil {
			return fmt.Errorf("reading the Deployment of the control plane: %w", err)
		}
		if ready := template.Status.ReadyReplicas; ready != replicas {
			return fmt.Errorf("the Deployment of the control plane has %d of %d ready replicas", ready, replicas)
		}
		return nil
	})
}

func deliveredObjects(name string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: workloads, Name: name}
	labels, count := map[string]string{"app": name}, int32(replicas)
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workloads}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "value"}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: pauseImage, ImagePullPolicy: corev1.PullNever}}},
			},
		}},
		&policyv1alpha1.PropagationPolicy{ObjectMeta: meta, Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: name},
				{APIVersion: "apps/v1", Kind: "Deployment", Name: name}},
			Placement: policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{member, pulled}}},
		}},
	}
}
