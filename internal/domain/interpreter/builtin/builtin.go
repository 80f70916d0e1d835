// Package builtin implements the interpreter rules for kinds of Kubernetes and for ServiceImport.
//
// Invariants, in addition to those of package interpreter:
//
//   - Rules apply to exactly the group, version and kind in the table of New.
//   - Sums over clusters saturate. An invalid status of a member causes an error that contains the
//     name of the cluster.
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

// Options configures the rules.
type Options struct {
	// ResourceQuotaEstimate sets the priority class in replica requirements, so that estimators can
	// apply quotas with a priority class scope. The default is false.
	ResourceQuotaEstimate bool

	// Now returns the current time for conditions of Deployments and Jobs. It is required.
	Now func() time.Time
}

// New returns a source that provides the builtin rules.
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
