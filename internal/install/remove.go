package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// removedKind is a kind of object that a control plane has in its host cluster.
type removedKind struct {
	group, version, kind string
	// format is the message about a deletion. If it is empty, the message contains the kind and the name.
	format string
}

// removedKinds are the kinds in deletion order. Workloads come first, so that Pods end before the Secrets
// that they mount are deleted.
var removedKinds = []removedKind{
	{"batch", "v1", "CronJob", ""},
	{"apps", "v1", "Deployment", "delete deployment %q"},
	{"apps", "v1", "StatefulSet", "delete StatefulSet: %q"},
	{"policy", "v1", "PodDisruptionBudget", ""},
	{"networking.k8s.io", "v1", "NetworkPolicy", ""},
	{"", "v1", "Service", "delete Service %q"},
	{"rbac.authorization.k8s.io", "v1", "RoleBinding", ""},
	{"rbac.authorization.k8s.io", "v1", "Role", ""},
	{"", "v1", "ServiceAccount", ""},
	{"", "v1", "Secret", "delete Secrets %q"},
}

// podsDeletedTimeout limits the wait for the deletion of Pods.
const podsDeletedTimeout = time.Minute

// Removal removes a control plane from its host cluster.
type Removal struct {
	*Host
	Namespace string
	// DryRun makes the removal report without deleting.
	DryRun bool
	// PurgeNamespace makes the removal delete the namespace too.
	PurgeNamespace bool
	// Printf prints a line.
	Printf func(format string, args ...any)
}

// Run deletes all objects in the namespace that have BootstrappingLabel, and removes the node label. It
// keeps etcd's data. A run after a failed run continues.
func (r Removal) Run(ctx context.Context) error {
	for _, kind := range removedKinds {
		if kind.kind == "PodDisruptionBudget" {
			if err := r.awaitPodsDeleted(ctx); err != nil {
				return err
			}
		}
		if err := r.deleteAll(ctx, kind); err != nil {
			return err
		}
	}
	if r.PurgeNamespace {
		r.Printf("delete Namespace %q", r.Namespace)
		if err := r.delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}); err != nil {
			return fmt.Errorf("deleting namespace %s of %s: %w", r.Namespace, HostName, err)
		}
		if !r.DryRun {
			if err := awaitNamespaceDeleted(ctx, r.api, r.Namespace); err != nil {
				return err
			}
		}
	}
	return r.unlabelNodes(ctx)
}

// unlabelNodes removes EtcdNodeLabel from nodes unless another installation in the host cluster uses it.
func (r Removal) unlabelNodes(ctx context.Context) error {
	nodes := r.nodesWithLabel(clusterv1alpha1.EtcdNodeLabel)
	if len(nodes) == 0 {
		r.Printf("no node has the label %q", clusterv1alpha1.EtcdNodeLabel)
		return nil
	}
	user, err := r.otherEtcdNamespace(ctx, r.Namespace)
	if err != nil {
		return err
	}
	for i := range nodes {
		name := nodes[i].Name
		if user != "" {
			r.Printf("node %q keeps label %q: etcd in namespace %q uses it", name, clusterv1alpha1.EtcdNodeLabel, user)
			continue
		}
		r.Printf("remove node %q labels %q", name, clusterv1alpha1.EtcdNodeLabel)
		if r.DryRun {
			continue
		}
		if err := r.patchLabel(ctx, name, "null"); err != nil {
			return err
		}
	}
	return nil
}

// deleteAll deletes all labeled objects of a kind.
func (r Removal) deleteAll(ctx context.Context, kind removedKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.group, Version: kind.version, Kind: kind.kind + "List"})
	if err := r.api.List(ctx, list, client.InNamespace(r.Namespace), client.HasLabels{clusterv1alpha1.BootstrappingLabel}); err != nil {
		return fmt.Errorf("listing %ss in namespace %s of %s: %w", kind.kind, r.Namespace, HostName, err)
	}
	format := kind.format
	if format == "" {
		format = "delete " + kind.kind + " %q"
	}
	for i := range list.Items {
		object := &list.Items[i]
		r.Printf(format, object.GetName())
		if err := r.delete(ctx, object); err != nil {
			return fmt.Errorf("deleting %s %s/%s of %s: %w", kind.kind, r.Namespace, object.GetName(), HostName, err)
		}
	}
	return nil
}

func (r Removal) delete(ctx context.Context, object client.Object) error {
	if r.DryRun {
		return nil
	}
	return client.IgnoreNotFound(r.api.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// awaitPodsDeleted waits until the Pods of the deleted workloads have ended.
func (r Removal) awaitPodsDeleted(ctx context.Context) error {
	if r.DryRun {
		return nil
	}
	var names []string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, podsDeletedTimeout, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := r.api.List(ctx, pods, client.InNamespace(r.Namespace), client.HasLabels{clusterv1alpha1.BootstrappingLabel})
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		names = nil
		for i := range pods.Items {
			names = append(names, pods.Items[i].Name)
		}
		return len(names) == 0, nil
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		//nolint:staticcheck // Pods is a kind
		return fmt.Errorf("Pods in namespace %s of %s have not ended after %s: %s: check their nodes, and run the command again, which continues",
			r.Namespace, HostName, podsDeletedTimeout, strings.Join(names, ", "))
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("waiting for the end of Pods in namespace %s of %s: %w", r.Namespace, HostName, err)
	}
	return nil
}
