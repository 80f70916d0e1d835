package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install"
)

// deletePods deletes the Pods of one component after the other, and waits until new Pods are Ready.
func (j *journey) deletePods(ctx context.Context) error {
	components, err := j.components(ctx)
	if err != nil {
		return err
	}
	for _, component := range components {
		began := time.Now()
		if err := j.replacePods(ctx, component); err != nil {
			return err
		}
		j.report.add("new Pod of "+component.GetName(), "%.1f s", time.Since(began).Seconds())
	}
	return nil
}

func (j *journey) replacePods(ctx context.Context, component client.Object) error {
	pods, err := install.ListPods(ctx, j.host, namespace, selectorOf(component))
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("%s has no Pods", component.GetName())
	}
	for i := range pods {
		if err := j.host.Delete(ctx, &pods[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Pod %s: %w", pods[i].Name, err)
		}
	}
	return j.awaitReplaced(ctx, component, pods)
}

// awaitReplaced waits until other Pods of a component are Ready. It does not wait for the end of deleted
// Pods: an API server ends only after 30 seconds if clients watch aggregated APIs through it.
func (j *journey) awaitReplaced(ctx context.Context, component client.Object, deleted []corev1.Pod) error {
	return j.servers.await(ctx, "new Pods of "+component.GetName()+" are Ready", stepTimeout, func(ctx context.Context) error {
		pods, err := install.ListPods(ctx, j.host, namespace, selectorOf(component))
		if err != nil {
			return err
		}
		ready := 0
		for i := range pods {
			isDeleted := slices.ContainsFunc(deleted, func(pod corev1.Pod) bool { return pod.UID == pods[i].UID })
			if !isDeleted && podutils.IsPodReady(&pods[i]) {
				ready++
			}
		}
		if ready < len(deleted) {
			return fmt.Errorf("%d of %d new Pods are Ready", ready, len(deleted))
		}
		return nil
	})
}

// components returns the Deployments and StatefulSets of the control plane.
func (j *journey) components(ctx context.Context) ([]client.Object, error) {
	deployments, statefulSets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	if err := errors.Join(j.host.List(ctx, deployments, client.InNamespace(namespace)),
		j.host.List(ctx, statefulSets, client.InNamespace(namespace))); err != nil {
		return nil, fmt.Errorf("listing the components: %w", err)
	}
	var all []client.Object
	for i := range deployments.Items {
		all = append(all, &deployments.Items[i])
	}
	for i := range statefulSets.Items {
		all = append(all, &statefulSets.Items[i])
	}
	return all, nil
}

func selectorOf(component client.Object) map[string]string {
	switch c := component.(type) {
	case *appsv1.Deployment:
		return c.Spec.Selector.MatchLabels
	case *appsv1.StatefulSet:
		return c.Spec.Selector.MatchLabels
	}
	return nil
}

// awaitComponents waits until all components have the Pods of their current template.
func (j *journey) awaitComponents(ctx context.Context) error {
	components, err := j.components(ctx)
	if err != nil {
		return err
	}
	for _, component := range components {
		if err := install.AwaitReady(ctx, j.host, component, stepTimeout); err != nil {
			return err
		}
	}
	return nil
}

// renew renews the certificate of the clients, which restarts the components that use it.
func (j *journey) renew(ctx context.Context) error {
	if _, err := j.atHost(ctx, "certs", "check"); err != nil {
		return err
	}
	before, err := j.certificates(ctx)
	if err != nil {
		return err
	}
	if _, err := j.atHost(ctx, "certs", "renew", "karmada"); err != nil {
		return err
	}
	after, err := j.certificates(ctx)
	if err != nil {
		return err
	}
	if bytes.Equal(before.Data["karmada.crt"], after.Data["karmada.crt"]) {
		return errors.New("the certificate is not renewed")
	}
	if err := j.awaitComponents(ctx); err != nil {
		return err
	}
	return j.checkUnchanged(ctx, "init after the renewal")
}

// removedCertificate is a certificate that the Job of the renewal must issue again.
const removedCertificate = "front-proxy-client.crt"

// checkRenewalJob removes a certificate, and requires that the Job of the renewal issues it.
func (j *journey) checkRenewalJob(ctx context.Context) error {
	secret, err := j.certificates(ctx)
	if err != nil {
		return err
	}
	complete := secret.DeepCopy()
	delete(secret.Data, removedCertificate)
	if err := j.host.Patch(ctx, secret, client.MergeFrom(complete)); err != nil {
		return fmt.Errorf("removing a certificate: %w", err)
	}
	if err := j.runRenewalJob(ctx); err != nil {
		return err
	}
	if secret, err = j.certificates(ctx); err != nil {
		return err
	}
	if len(secret.Data[removedCertificate]) == 0 {
		return fmt.Errorf("the Job does not issue %s", removedCertificate)
	}
	return j.awaitComponents(ctx)
}

// runRenewalJob runs the Job that renews the certificates in production.
func (j *journey) runRenewalJob(ctx context.Context) error {
	cronJobs := &batchv1.CronJobList{}
	if err := j.host.List(ctx, cronJobs, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the CronJobs: %w", err)
	}
	if len(cronJobs.Items) != 1 {
		return fmt.Errorf("there are %d CronJobs instead of the one of the renewal", len(cronJobs.Items))
	}
	template := cronJobs.Items[0].Spec.JobTemplate
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "renewal-now", Labels: template.Labels}, Spec: template.Spec}
	if err := j.host.Create(ctx, job); err != nil {
		return fmt.Errorf("creating the Job: %w", err)
	}
	err := j.servers.await(ctx, "the Job succeeds", stepTimeout, func(ctx context.Context) error {
		if err := j.host.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return fmt.Errorf("reading the Job: %w", err)
		}
		if job.Status.Succeeded == 0 {
			return fmt.Errorf("the Job has %d active and %d failed Pods", job.Status.Active, job.Status.Failed)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return j.host.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// installedKinds are the kinds of objects that an installation consists of.
var installedKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "batch", Version: "v1", Kind: "Job"},
	{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "Pod"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

// remove removes the control plane. The host must have no object of it, and keep what was delivered.
func (j *journey) remove(ctx context.Context) error {
	if _, err := j.atHost(ctx, "deinit", "--force"); err != nil {
		return err
	}
	err := j.servers.await(ctx, "no object of the control plane exists", stepTimeout, func(ctx context.Context) error {
		remaining := map[string]bool{}
		for _, kind := range installedKinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err := j.host.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return fmt.Errorf("listing %s: %w", kind.Kind, err)
			}
			for i := range list.Items {
				if name := list.Items[i].GetName(); name != "default" { // the service account of the namespace
					remaining[kind.Kind+" "+name] = true
				}
			}
		}
		if len(remaining) > 0 {
			return fmt.Errorf("%s remain", strings.Join(slices.Sorted(maps.Keys(remaining)), ", "))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := j.checkKept(ctx); err != nil {
		return err
	}
	_, err = j.atHost(ctx, "deinit", "--force", "--purge-namespace")
	return err
}

// checkKept requires that the node has no label of the removed control plane, and still runs what was
// delivered.
func (j *journey) checkKept(ctx context.Context) error {
	nodes, delivered := &corev1.NodeList{}, &appsv1.Deployment{}
	if err := j.host.List(ctx, nodes, client.HasLabels{clusterv1alpha1.EtcdNodeLabel}); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	if len(nodes.Items) > 0 {
		return errors.New("the node still has the label of etcd")
	}
	if err := j.host.Get(ctx, client.ObjectKey{Namespace: workloads, Name: pulled}, delivered); err != nil {
		return fmt.Errorf("reading the Deployment of the member: %w", err)
	}
	if delivered.Status.ReadyReplicas != replicas {
		return fmt.Errorf("the Deployment of the member has %d ready Pods instead of %d", delivered.Status.ReadyReplicas, replicas)
	}
	return nil
}
