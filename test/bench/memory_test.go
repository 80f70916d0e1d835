package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestMemoryMemberServesClients sends the requests of a control plane with a real client.
func TestMemoryMemberServesClients(t *testing.T) {
	member, err := startMemoryMember(3, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		member.CloseClientConnections()
		member.Close()
	}()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: member.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, Timeout: time.Minute,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	core := client.CoreV1()
	nodes, err := core.Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	pods, err := core.Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 5 {
		t.Fatalf("%d Pods, %v", len(pods.Items), err)
	}
	resources, err := client.Discovery().ServerPreferredResources()
	if err != nil || len(resources) != 41 {
		t.Fatalf("%d groups, %v", len(resources), err)
	}

	system, err := core.Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil || string(system.UID) != member.id || member.id == "" {
		t.Fatalf("the UID of kube-system is %q, want %q: %v", system.UID, member.id, err)
	}
	watcher, err := core.Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if _, err := core.Namespaces().Get(t.Context(), "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("get before create: %v", err)
	}
	made, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	if err != nil || made.UID == "" {
		t.Fatalf("created %v, %v", made, err)
	}
	if _, err := core.Namespaces().Create(t.Context(), made, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("second create: %v", err)
	}
	if err := core.Namespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		event, open := <-watcher.ResultChan()
		namespace, ok := event.Object.(*corev1.Namespace)
		if !open || event.Type != want || !ok || namespace.Name != "shop" {
			t.Fatalf("event %v, want %s", event, want)
		}
	}
}
