package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var clusterResource = schema.GroupVersionResource{Group: "cluster.karmada.io", Version: "v1alpha1", Resource: "clusters"}

const (
	credentialsNamespace = "karmada-cluster"
	idleNodes, idlePods  = 10, 300
	pollInterval         = 500 * time.Millisecond
)

// idle measures the cost of registered members without changes: API servers in the memory
// of this program, each with 10 nodes and 300 Pods.
func (b *bench) idle(ctx context.Context) (err error) {
	members, err := b.registerIdleMembers(ctx)
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.timeout)
		defer cancel()
		err = errors.Join(err, b.removeIdleMembers(cleanup, members))
	}()
	if err != nil {
		return err
	}
	if err := b.awaitIdleMembersReady(ctx); err != nil {
		return err
	}
	if err := b.waitForLateWrites(ctx); err != nil {
		return err
	}
	return b.measureIdle(ctx)
}

// measureIdle takes a sample at the beginning and at the end of a period without changes.
func (b *bench) measureIdle(ctx context.Context) error {
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	select {
	case <-time.After(b.options.quiet):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	after, err := b.sample(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	for name, used := range after.processes {
		share := (used.cpu - before.processes[name].cpu).Seconds() / took.Seconds()
		b.report.add("idle", "CPU of "+name, 100*share, "% of one core")
	}
	b.report.addMemory("idle", after)
	b.report.addRequests("idle", "writes to karmada, a minute", after.karmadaRequests(before).requests.writes(),
		max(1, int(took.Minutes()+0.5)))
	return nil
}

func idleMemberName(i int) string { return fmt.Sprintf("idle-%03d", i) }

// registerIdleMembers starts the members and registers them. After an error, it also
// returns the members that it started.
func (b *bench) registerIdleMembers(ctx context.Context) ([]*memoryMember, error) {
	var members []*memoryMember
	for i := range b.options.idleMembers {
		member, err := startMemoryMember(idleNodes, idlePods)
		if err != nil {
			return members, err
		}
		members = append(members, member)
		if err := b.registerMember(ctx, idleMemberName(i), member); err != nil {
			return members, err
		}
	}
	return members, nil
}

func (b *bench) registerMember(ctx context.Context, name string, member *memoryMember) error {
	caBundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: member.Certificate().Raw})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: name},
		Data:       map[string][]byte{"token": []byte("idle"), "caBundle": caBundle},
	}
	if _, err := b.fleet.karmada.typed.CoreV1().Secrets(credentialsNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("storing the credentials of %s: %w", name, err)
	}
	registered := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterResource.GroupVersion().String(), "kind": "Cluster", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"syncMode": "Push", "apiEndpoint": member.URL, "id": member.id,
			"secretRef": map[string]any{"namespace": credentialsNamespace, "name": name},
		},
	}}
	if _, err := b.fleet.policies.Resource(clusterResource).Create(ctx, registered, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	return nil
}

// awaitIdleMembersReady waits until all Clusters are Ready.
func (b *bench) awaitIdleMembersReady(ctx context.Context) error {
	return poll(ctx, func() (bool, error) {
		list, err := b.fleet.policies.Resource(clusterResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("listing clusters: %w", err)
		}
		ready := 0
		for i := range list.Items {
			if isReadyCluster(&list.Items[i]) {
				ready++
			}
		}
		return ready >= b.options.idleMembers+len(b.fleet.members), nil
	})
}

func isReadyCluster(cluster *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(cluster.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && fields["type"] == "Ready" && fields["status"] == "True"
	})
}

// removeIdleMembers unregisters the members and stops their servers.
func (b *bench) removeIdleMembers(ctx context.Context, members []*memoryMember) error {
	var errs []error
	for i := range members {
		errs = append(errs, ignoreNotFound(b.fleet.policies.Resource(clusterResource).Delete(ctx, idleMemberName(i), metav1.DeleteOptions{})))
	}
	errs = append(errs, poll(ctx, func() (bool, error) {
		for i := range members {
			_, err := b.fleet.policies.Resource(clusterResource).Get(ctx, idleMemberName(i), metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return true, nil
	}))
	for i, member := range members {
		errs = append(errs, ignoreNotFound(b.fleet.karmada.typed.CoreV1().Secrets(credentialsNamespace).Delete(ctx, idleMemberName(i),
			metav1.DeleteOptions{})))
		member.CloseClientConnections()
		member.Close()
	}
	return errors.Join(errs...)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// poll calls ask until it returns true or an error, or until ctx ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
