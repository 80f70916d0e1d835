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
)

// refreshTimeout bounds reading a Secret that has changed.
const refreshTimeout = 30 * time.Second

// versions follows which versions of Secrets there are, in the namespaces that
// Clusters refer to. It holds names and versions and nothing that is secret.
type versions struct {
	karmada metadata.Interface
	// changed is told of each Secret that came, changed or went.
	changed func(types.NamespacedName)

	mu     sync.Mutex
	spaces map[string]followed
}

// followed is a namespace whose Secrets are followed until it ends.
type followed struct {
	toolscache.SharedIndexInformer
	end context.CancelFunc
}

// of is the version of a Secret, empty if there is none. known is false as long as
// nobody tells.
func (v *versions) of(ctx context.Context, ref types.NamespacedName) (version string, known bool) {
	if v.karmada == nil {
		return "", false
	}
	informer := v.space(ctx, ref.Namespace)
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

// space follows the Secrets of a namespace until ctx ends, or nobody needs it any more.
func (v *versions) space(ctx context.Context, namespace string) toolscache.SharedIndexInformer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if space, ok := v.spaces[namespace]; ok {
		return space.SharedIndexInformer
	}
	informer := metadatainformer.NewFilteredMetadataInformer(v.karmada, corev1.SchemeGroupVersion.WithResource("secrets"),
		namespace, 0, toolscache.Indexers{}, nil).Informer()
	var told string
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		// Without this watch Secrets are read now and then, as they are when it is not
		// allowed; the same cause is told once.
		if text := err.Error(); text != told && ctx.Err() == nil {
			told = text
			klog.FromContext(ctx).V(2).Info("Watch of credentials ended", "namespace", namespace, "cause", text)
		}
	})
	if err == nil {
		err = informer.SetTransform(nameAndVersion)
	}
	if err == nil {
		_, err = informer.AddEventHandler(v.handler())
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Following credentials", "namespace", namespace)
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	v.spaces[namespace] = followed{informer, end}
	go informer.RunWithContext(ctx)
	return informer
}

// keep ends what is followed in namespaces that are not needed. One that is needed
// again is followed again.
func (v *versions) keep(needed func(namespace string) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for namespace, space := range v.spaces {
		if !needed(namespace) {
			space.end()
			delete(v.spaces, namespace)
		}
	}
}

func nameAndVersion(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
	}}, nil
}

func (v *versions) handler() toolscache.ResourceEventHandler {
	tell := func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if secret, ok := object.(*metav1.PartialObjectMetadata); ok {
			v.changed(types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name})
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				tell(object)
			}
		},
		UpdateFunc: func(_, object any) { tell(object) },
		DeleteFunc: tell,
	}
}

// secret reads the Secret of a cluster, and notes that the cluster uses it.
func (c *Clusters) secret(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*corev1.Secret, error) {
	ref, ok := secretOf(cluster)
	if !ok {
		return nil, fmt.Errorf("cluster %q: spec.secretRef is empty: %w", cluster.Name, errNoCredentials)
	}
	c.mu.Lock()
	c.users[cluster.Name] = ref
	c.mu.Unlock()
	return c.readSecret(ctx, cluster.Name, ref)
}

func (c *Clusters) readSecret(ctx context.Context, cluster string, ref types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.options.Secrets.Get(ctx, ref, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q: there is no secret %s, which holds its token: join the cluster again, or create it (%w)", cluster, ref, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading secret %s of cluster %q: %w", ref, cluster, err)
	}
	return secret, nil
}

func secretOf(cluster *clusterv1alpha1.Cluster) (ref types.NamespacedName, ok bool) {
	if cluster.Spec.SecretRef == nil {
		return ref, false
	}
	return types.NamespacedName{Namespace: cluster.Spec.SecretRef.Namespace, Name: cluster.Spec.SecretRef.Name}, true
}

// secretChanged brings the members that use a Secret up to date, so that watches
// that are open show the new token when they are renewed.
func (c *Clusters) secretChanged(ref types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, used := range c.users {
		if used != ref || c.refreshing[name] {
			continue
		}
		c.refreshing[name] = true
		go c.refresh(name)
	}
}

func (c *Clusters) refresh(name string) {
	ctx, cancel := context.WithTimeout(c.ctx, refreshTimeout)
	defer cancel()
	c.mu.Lock()
	// A change that comes from here on is another one.
	delete(c.refreshing, name)
	c.mu.Unlock()
	if _, err := c.Get(ctx, name); err != nil {
		// Whoever needs the member gets the same error, and tells it.
		klog.FromContext(ctx).V(4).Info("Changed credentials are of no use", "member", name, "cause", err)
	}
}
