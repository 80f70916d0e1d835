package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/test/bench/podmember"
)

func searchMemberName(i int) string { return fmt.Sprintf("search-%03d", i) }

// registerMembers starts the members, and creates their Secrets and Clusters. No controller of Karmada
// runs, so the Clusters stay Ready.
func (s *searchRun) registerMembers(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: credentialsNamespace}}
	if _, err := s.fleet.karmada.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", credentialsNamespace, err)
	}
	for i := range s.options.members {
		member, err := podmember.Start(podmember.Options{
			Member: i, Pods: s.options.pods / s.options.members, Namespaces: s.options.pods / s.options.listed,
		})
		if err != nil {
			return err
		}
		s.members = append(s.members, member)
		if err := s.registerPodMember(ctx, searchMemberName(i), member); err != nil {
			return err
		}
	}
	return nil
}

func (s *searchRun) registerPodMember(ctx context.Context, name string, member *podmember.Member) error {
	caBundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: member.Certificate().Raw})
	for _, secretName := range []string{name, impersonatorName(name)} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: secretName},
			Data:       map[string][]byte{"token": []byte(secretName), "caBundle": caBundle},
		}
		if _, err := s.fleet.karmada.typed.CoreV1().Secrets(credentialsNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("storing Secret %s: %w", secretName, err)
		}
	}
	clusters, object := s.fleet.policies.Resource(clusterResource), podCluster(name, member.URL, member.ID())
	status := object.Object["status"]
	created, err := clusters.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	created.Object["status"] = status
	if _, err := clusters.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("setting the status of Cluster %s: %w", name, err)
	}
	return nil
}

func impersonatorName(member string) string { return member + "-impersonator" }

// podCluster returns the Cluster of a member that serves only Pods.
func podCluster(name, endpoint, id string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterResource.GroupVersion().String(), "kind": "Cluster", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"syncMode": "Push", "apiEndpoint": endpoint, "id": id,
			"secretRef":             map[string]any{"namespace": credentialsNamespace, "name": name},
			"impersonatorSecretRef": map[string]any{"namespace": credentialsNamespace, "name": impersonatorName(name)},
		},
		"status": map[string]any{
			"kubernetesVersion": "v1.36.3",
			"conditions": []any{
				map[string]any{
					"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "cluster is healthy and ready to accept workloads",
					"lastTransitionTime": "2026-01-01T00:00:00Z",
				},
				map[string]any{
					"type": "CompleteAPIEnablements", "status": "True", "reason": "CompleteAPIEnablements",
					"message":            "collected all APIEnablements from the cluster",
					"lastTransitionTime": "2026-01-01T00:00:00Z",
				},
			},
			"apiEnablements": []any{map[string]any{"groupVersion": "v1", "resources": []any{map[string]any{"name": "pods", "kind": "Pod"}}}},
		},
	}}
}

const (
	searchAPI      = "/apis/search.karmada.io/v1alpha1"
	registriesPath = searchAPI + "/resourceregistries"
	registryName   = "bench"
)

// createRegistry selects the Pods of all members.
func (s *searchRun) createRegistry(ctx context.Context) error {
	return s.client.create(ctx, registriesPath, map[string]any{
		"apiVersion": "search.karmada.io/v1alpha1", "kind": "ResourceRegistry", "metadata": map[string]any{"name": registryName},
		"spec": map[string]any{
			"targetCluster":     map[string]any{},
			"resourceSelectors": []any{map[string]any{"apiVersion": "v1", "kind": "Pod"}},
		},
	})
}

// cleanUp stops everything that the scenario started, and deletes its objects.
func (s *searchRun) cleanUp(ctx context.Context) error {
	var errs []error
	if s.program != nil {
		// An error means that the program has ended, or did not create the registry.
		_ = s.client.delete(ctx, registriesPath+"/"+registryName)
		s.memory.stop()
		s.program.stop()
	}
	for i, member := range s.members {
		name := searchMemberName(i)
		errs = append(errs, ignoreNotFound(s.fleet.policies.Resource(clusterResource).Delete(ctx, name, metav1.DeleteOptions{})))
		for _, secret := range []string{name, impersonatorName(name)} {
			errs = append(errs, ignoreNotFound(s.fleet.karmada.typed.CoreV1().Secrets(credentialsNamespace).Delete(ctx, secret,
				metav1.DeleteOptions{})))
		}
		member.Close()
	}
	return errors.Join(errs...)
}
