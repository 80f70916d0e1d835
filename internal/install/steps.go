package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/api/crds"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

// CRD is the definition of an API in the control plane.
type CRD = crds.CRD

const (
	pollInterval = 200 * time.Millisecond
	// reachTimeout limits how long a ready API server may be unreachable.
	reachTimeout = 30 * time.Second
	// availableTimeout limits how long an aggregated API may be unavailable.
	availableTimeout = 2 * time.Minute
	// aggregatedPort is the port of the Services of aggregated API servers and of the webhook.
	aggregatedPort = 443
)

// startAPIServer applies the passive objects, etcd and the API server, and waits for both.
func (i *Installer) startAPIServer(ctx context.Context) error {
	if err := i.ensureNamespace(ctx); err != nil {
		return err
	}
	if err := i.labelEtcdNode(ctx); err != nil {
		return err
	}
	all, _ := i.inventory()
	if err := i.store(ctx, all, !i.isFirst()); err != nil {
		return err
	}
	if err := i.apply(ctx, i.objects.passive...); err != nil {
		return err
	}
	if err := i.apply(ctx, i.objects.servers...); err != nil {
		return err
	}
	if err := i.awaitReady(ctx, i.objects.servers...); err != nil {
		return err
	}
	return i.connect(ctx)
}

// ensureNamespace creates the namespace in the host if it does not exist. An existing namespace is
// not changed. A namespace that is being deleted is created again.
func (i *Installer) ensureNamespace(ctx context.Context) error {
	existing := &corev1.Namespace{}
	err := i.host.Get(ctx, client.ObjectKey{Name: i.Namespace}, existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s of %s: %w", i.Namespace, hostName, err)
	}
	if err == nil && existing.DeletionTimestamp == nil {
		return nil
	}
	if err == nil && !i.applier.DryRun {
		i.Progressf("Namespace %s is being deleted in %s, which takes up to %s", i.Namespace, hostName, namespaceEndTimeout)
		if err := awaitNamespaceEnd(ctx, i.host, i.Namespace); err != nil {
			return err
		}
	}
	return i.apply(ctx, install.NewNamespace(i.Namespace))
}

// namespaceEndTimeout limits how long the deletion of a namespace may take.
const namespaceEndTimeout = 2 * time.Minute

// awaitNamespaceEnd waits until a namespace that is being deleted does not exist.
func awaitNamespaceEnd(ctx context.Context, host client.Client, name string) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, namespaceEndTimeout, true, func(ctx context.Context) (bool, error) {
		err := host.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the deletion of namespace %s in %s: %w: see the conditions of the namespace for what remains in it", name, hostName, err)
	}
	return nil
}

func (i *Installer) labelEtcdNode(ctx context.Context) error {
	if i.EtcdNode == "" {
		return nil
	}
	i.Progressf("node %s gets the label %s, because its disk has the data of etcd", i.EtcdNode, clusterv1alpha1.EtcdNodeLabel)
	i.written++
	return (&Host{api: i.host}).patchLabel(ctx, i.EtcdNode, `""`)
}

// connect waits until this program reaches the API server of the control plane.
func (i *Installer) connect(ctx context.Context) error {
	config := i.karmadaConfig()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client of %s: %w", karmadaName, err)
	}
	var lastErr error
	err = wait.PollUntilContextTimeout(ctx, pollInterval, reachTimeout, true, func(ctx context.Context) (bool, error) {
		lastErr = client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("reaching %s at %s: %w: check that this machine reaches the address, or set another one with --karmada-apiserver-advertise-address", karmadaName, config.Host, lastErr)
	}
	i.karmada = config
	return nil
}

// prepareControlPlane applies the namespaces, CRDs and roles of the control plane. The objects that
// register servers follow when the servers run, because the API server calls them for each request.
func (i *Installer) prepareControlPlane(ctx context.Context) error {
	namespaces, others, err := i.controlPlaneObjects(rendering.ControlPlane{})
	if err != nil {
		return err
	}
	for _, group := range [][]client.Object{namespaces, others} {
		if err := i.applyKarmada(ctx, group...); err != nil {
			return err
		}
	}
	conversion := install.Conversion{URL: i.webhookURL() + crds.ConversionPath, CABundle: i.files["ca.crt"]}
	written, err := install.ApplyCRDs(ctx, i.karmada, i.CRDs, conversion)
	i.written += written
	return err
}

func (i *Installer) controlPlaneObjects(c rendering.ControlPlane) (namespaces, others []client.Object, err error) {
	c.Server, c.CA = i.settings.externalURL, i.files["ca.crt"]
	return install.ControlPlaneObjects(i.Installation, c)
}

func (i *Installer) serviceHost(component string) string {
	return fmt.Sprintf("%s-%s.%s.svc", i.Release, component, i.Namespace)
}

func (i *Installer) webhookURL() string {
	return fmt.Sprintf("https://%s:%d", i.serviceHost(webhook), aggregatedPort)
}

// startComponents applies the components and waits for the servers, which the other components need.
func (i *Installer) startComponents(ctx context.Context) error {
	if err := i.apply(ctx, i.objects.components...); err != nil {
		return err
	}
	if err := i.deleteObsolete(ctx); err != nil {
		return err
	}
	servers := slices.DeleteFunc(slices.Clone(i.objects.components), func(object client.Object) bool {
		return !slices.Contains([]string{i.Release + "-" + aggregated, i.Release + "-" + webhook}, object.GetName())
	})
	return i.awaitReady(ctx, servers...)
}

// Components with a server, after the prefix of their names.
const (
	aggregated = "aggregated-apiserver"
	webhook    = "webhook"
)

// registerServers applies the webhook configurations and the APIServices, and waits until the
// aggregated APIs are available.
func (i *Installer) registerServers(ctx context.Context) error {
	_, objects, err := i.controlPlaneObjects(rendering.ControlPlane{
		Webhook:    i.webhookURL(),
		APIServers: map[string]rendering.Address{"karmada-" + aggregated: {Host: i.serviceHost(aggregated), Port: aggregatedPort}},
	})
	if err != nil {
		return err
	}
	if err := i.applyKarmada(ctx, objects...); err != nil {
		return err
	}
	registered, err := i.registerSearch(ctx)
	if err != nil {
		return err
	}
	return install.AwaitAPIServices(ctx, i.karmada, availableTimeout, install.APIServiceNames(append(objects, registered...))...)
}

// awaitComponents waits for all components.
func (i *Installer) awaitComponents(ctx context.Context) error {
	if err := i.awaitReady(ctx, i.objects.components...); err != nil {
		return err
	}
	return i.complete(ctx)
}

// applyKarmada applies objects of the control plane and counts the changes.
func (i *Installer) applyKarmada(ctx context.Context, objects ...client.Object) error {
	written, err := install.Apply(ctx, i.karmada, objects...)
	i.written += written
	return err
}

// search is the key of karmada-search in the values of the chart. It is also the name after the prefix
// of the release.
const search = "search"

// searchService is the name of the Service of karmada-search in the control plane.
const searchService = "karmada-search"

// registerSearch registers karmada-search if the values contain it, and otherwise removes an earlier
// registration. It returns the objects that it applied. The addon of karmadactl has the same objects:
// they are kept.
func (i *Installer) registerSearch(ctx context.Context) ([]client.Object, error) {
	objects, err := install.ServerObjects(i.Installation, searchService, rendering.Address{Host: i.serviceHost(search), Port: aggregatedPort}, i.files["ca.crt"])
	if err != nil {
		return nil, err
	}
	karmada, err := client.New(i.karmada, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", karmadaName, err)
	}
	applier := install.Applier{API: karmada, Installer: Name, Cluster: karmadaName, Progressf: i.Progressf}
	if i.settings.hasSearch() {
		written, err := applier.Apply(ctx, objects...)
		i.written += written
		return objects, err
	}
	for _, object := range objects {
		var foreign *install.ForeignError
		err := applier.CheckOwner(ctx, object)
		if errors.As(err, &foreign) {
			continue
		}
		if err == nil {
			err = applier.Delete(ctx, object)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
