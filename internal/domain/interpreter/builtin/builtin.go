// Package builtin contains the interpreter rules that Karmada ships: rules in Go for Kubernetes kinds
// and ServiceImport (New), and customizations with Lua scripts for third-party kinds (Customizations).
//
// Each file in the folder kinds is a ResourceInterpreterCustomization, as a user would write it. To
// ship another third-party kind, add one file to kinds, and one file with test objects to testdata.
//
// Invariants, in addition to those of package interpreter:
//
//   - A rule applies only to the exact group, version and kind for which it is registered.
//   - Sums over clusters saturate instead of overflowing. An invalid member status returns an error
//     that names the cluster.
//   - Results are deterministic: the same input gives the same output, and unordered lists are
//     sorted.
package builtin

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	multiclusterv1alpha1 "karmada.io/karmada/api/multicluster/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// Options configures the rules that are written in Go.
type Options struct {
	// ResourceQuotaEstimate sets the priority class in replica requirements, so that estimators can
	// apply quotas with a priority class scope. The default is false.
	ResourceQuotaEstimate bool

	// Now returns the current time for conditions of Deployments and Jobs. It is required.
	Now func() time.Time
}

// New returns the source of the rules that are written in Go.
func New(options Options) interpreter.Source {
	pods := podReader{includePriorityClass: options.ResourceQuotaEstimate}
	return table{
		appsv1.SchemeGroupVersion.WithKind("Deployment"):                     deployment(pods, options.Now),
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):                     replicaSet(pods),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"):                    statefulSet(pods),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"):                      daemonSet(),
		batchv1.SchemeGroupVersion.WithKind("Job"):                           job(pods, options.Now),
		batchv1.SchemeGroupVersion.WithKind("CronJob"):                       cronJob(),
		corev1.SchemeGroupVersion.WithKind("Pod"):                            pod(pods),
		corev1.SchemeGroupVersion.WithKind("Service"):                        service(),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"):                 serviceAccount(),
		corev1.SchemeGroupVersion.WithKind("Secret"):                         secret(),
		corev1.SchemeGroupVersion.WithKind("PersistentVolume"):               persistentVolume(),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"):          persistentVolumeClaim(),
		networkingv1.SchemeGroupVersion.WithKind("Ingress"):                  ingress(),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):                    clusterRole(),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):          podDisruptionBudget(),
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"): horizontalPodAutoscaler(),
		multiclusterv1alpha1.GroupVersion.WithKind("ServiceImport"):          serviceImport(),
	}
}

type table map[schema.GroupVersionKind]interpreter.Rules

func (t table) Rules(gvk schema.GroupVersionKind) interpreter.Rules { return t[gvk] }
