package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is one API server: the API server of the control plane or of a member.
type cluster struct {
	name  string
	typed kubernetes.Interface
}

// fleet is the control plane under test and its members.
type fleet struct {
	karmada *cluster
	members []*cluster
	// policies accesses propagation policies and Clusters of the control plane.
	policies dynamic.Interface
	// namespace contains all templates of this run. Each run has its own namespace.
	namespace string
}

func connect(o options) (*fleet, error) {
	f := &fleet{namespace: "bench-" + strconv.FormatInt(time.Now().Unix(), 36)}
	var err error
	if f.karmada, f.policies, err = connectTo(o.karmadaKubeconfig, o.karmadaContext, "karmada"); err != nil {
		return nil, err
	}
	for _, name := range o.memberContexts {
		member, _, err := connectTo(o.membersKubeconfig, name, name)
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, member)
	}
	return f, nil
}

func connectTo(kubeconfig, contextName, name string) (*cluster, dynamic.Interface, error) {
	config, err := clientConfig(kubeconfig, contextName)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1 // the client of the benchmark must not be the bottleneck
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	return &cluster{name: name, typed: typed}, dynamicClient, nil
}

func clientConfig(kubeconfig, contextName string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: contextName},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %q of %s: %w", contextName, kubeconfig, err)
	}
	return config, nil
}

func (f *fleet) memberNames() []string {
	names := make([]string, 0, len(f.members))
	for _, member := range f.members {
		names = append(names, member.name)
	}
	return names
}

// createNamespace creates the namespace of the run, unless another scenario created it.
func (f *fleet) createNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	_, err := f.karmada.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", f.namespace, err)
	}
	return nil
}

// createNamespaceAndPolicy creates the namespace of the templates, and a policy that
// propagates all templates to all members.
func (f *fleet) createNamespaceAndPolicy(ctx context.Context) error {
	if err := f.createNamespace(ctx); err != nil {
		return err
	}
	policy := policyFor(f.namespace, f.memberNames())
	if _, err := f.policies.Resource(policyResource).Namespace(f.namespace).Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the propagation policy: %w", err)
	}
	return nil
}

// cleanUp deletes the namespace of the run in the control plane. Karmada then deletes the objects in
// the members.
func (f *fleet) cleanUp(ctx context.Context) error {
	err := f.karmada.typed.CoreV1().Namespaces().Delete(ctx, f.namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting namespace %s: %w", f.namespace, err)
	}
	return nil
}
