package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/loop"
)

// refreshTimeout is the maximum time to read a changed Secret.
const refreshTimeout = 30 * time.Second

// secretVersions watches the versions of Secrets in the namespaces to which Clusters refer. It
// stores names and versions, but no secret data.
type secretVersions struct {
	karmada metadata.Interface
	// onChange is called for each Secret that was added, changed or deleted.
	onChange func(types.NamespacedName)

	mu         sync.Mutex
	namespaces map[string]namespaceWatch
}

// namespaceWatch is the watch of the Secrets of a namespace.
type namespaceWatch struct {
	toolscache.SharedIndexInformer
	stop context.CancelFunc
}

// get returns the version of a Secret, or an empty version if the Secret does not exist. known is
// false while the watch is not synced.
func (s *secretVersions) get(ctx context.Context, ref types.NamespacedName) (version string, known bool) {
	if s.karmada == nil {
		return "", false
	}
	informer := s.watchNamespace(ctx, ref.Namespace)
	if informer == nil || !informer.HasSynced() {
		return "", false
	}
	stored, exists, err := informer.GetStore().GetByKey(ref.String())
	if err != nil {
		return "", false
	}
	if object, ok := stored.(*metav1.PartialObjectMetadata); exists && ok {
		return object.ResourceVersion, true
	}
	return "", true
}

// watchNamespace starts a watch of the Secrets of a namespace. The watch runs until ctx ends or no
// cluster needs it.
func (s *secretVersions) watchNamespace(ctx context.Context, namespace string) toolscache.SharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if watch, ok := s.namespaces[namespace]; ok {
		return watch.SharedIndexInformer
	}
	informer := metadatainformer.NewFilteredMetadataInformer(s.karmada, corev1.SchemeGroupVersion.WithResource("secrets"),
		namespace, 0, toolscache.Indexers{}, nil).Informer()
	var lastMessage string
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		// An error, such as Forbidden, is only logged, because without the watch Secrets are read
		// periodically. Consecutive equal errors are logged only once.
		if text := err.Error(); text != lastMessage && ctx.Err() == nil {
			lastMessage = text
			klog.FromContext(ctx).V(2).Info("Watch of the Secrets of clusters ended", "namespace", namespace, "cause", text)
		}
	})
	if err == nil {
		err = informer.SetTransform(trimToNameAndVersion)
	}
	if err == nil {
		_, err = informer.AddEventHandler(s.eventHandler())
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watching the Secrets of clusters", "namespace", namespace)
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	s.namespaces[namespace] = namespaceWatch{informer, end}
	go informer.RunWithContext(ctx)
	return informer
}

// stopUnneeded stops the watches of namespaces that are not needed. A later call of get starts such
// a watch again.
func (s *secretVersions) stopUnneeded(needed func(namespace string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for namespace, watch := range s.namespaces {
		if !needed(namespace) {
			watch.stop()
			delete(s.namespaces, namespace)
		}
	}
}

func trimToNameAndVersion(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
	}}, nil
}

func (s *secretVersions) eventHandler() toolscache.ResourceEventHandler {
	notify := func(secret *metav1.PartialObjectMetadata) {
		s.onChange(types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name})
	}
	return loop.Handlers[*metav1.PartialObjectMetadata]{
		Added: func(secret *metav1.PartialObjectMetadata, isInInitialList bool) {
			if !isInInitialList {
				notify(secret)
			}
		},
		Updated: func(_, after *metav1.PartialObjectMetadata) { notify(after) },
		Deleted: notify,
	}
}

// secretFor reads the Secret of a cluster, and records that the cluster uses it.
func (c *Clusters) secretFor(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*corev1.Secret, error) {
	ref, ok := secretKeyOf(cluster)
	if !ok {
		return nil, fmt.Errorf("cluster %q: spec.secretRef is empty: %w", cluster.Name, errNoConnectionData)
	}
	c.mu.Lock()
	c.secretsInUse[cluster.Name] = ref
	c.mu.Unlock()
	return c.readSecret(ctx, cluster.Name, ref)
}

func (c *Clusters) readSecret(ctx context.Context, cluster string, ref types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.options.Secrets.Get(ctx, ref, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q: there is no secret %s, which holds its token: join the cluster again, or create it (%w)", cluster,
			ref, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading secret %s of cluster %q: %w", ref, cluster, err)
	}
	return secret, nil
}

func secretKeyOf(cluster *clusterv1alpha1.Cluster) (ref types.NamespacedName, ok bool) {
	if cluster.Spec.SecretRef == nil {
		return ref, false
	}
	return types.NamespacedName{Namespace: cluster.Spec.SecretRef.Namespace, Name: cluster.Spec.SecretRef.Name}, true
}

// refreshUsers updates the members that use a Secret, so that open watches send the new token
// when they reconnect.
func (c *Clusters) refreshUsers(ref types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, used := range c.secretsInUse {
		if used != ref || c.refreshing[name] {
			continue
		}
		c.refreshing[name] = true
		go c.refreshMember(name)
	}
}

func (c *Clusters) refreshMember(name string) {
	ctx, cancel := context.WithTimeout(c.ctx, refreshTimeout)
	defer cancel()
	c.mu.Lock()
	// The cluster is removed from refreshing first, so that a later change starts another refresh.
	delete(c.refreshing, name)
	c.mu.Unlock()
	if _, err := c.Get(ctx, name); err != nil {
		// The error is only logged, because the next caller that needs the member gets the same
		// error and reports it.
		klog.FromContext(ctx).V(4).Info("Cannot use changed credentials", "member", name, "cause", err)
	}
}
